package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/filelock"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/proxy"
)

// place is where a gateway finds the sockets of a session, and an agent its public files.
type place struct {
	dir, public string   // "" where there is none
	lock        *os.File // of dir, as long as the process lives
}

// takePlace creates the directories, and locks that of the sockets. Sockets of a process that was killed are removed.
func takePlace(dir, public string, locks filelock.Locker) (p *place, err error) {
	p = &place{}
	if dir != "" {
		if p.dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
		if err := makeDir(p.dir, 0o711); err != nil {
			return nil, err
		}
		if public == "" {
			public = filepath.Join(p.dir, "public")
		}
	}
	if public != "" {
		if p.public, err = filepath.Abs(public); err != nil {
			return nil, err
		}
		if err := makeDir(p.public, 0o755); err != nil {
			return nil, err
		}
	}
	if dir == "" {
		return p, nil
	}
	p.lock, err = locks.Lock(filepath.Join(p.dir, ".lock"), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, hint.New(fmt.Errorf("serve in %s: another aileron serve does", p.dir), "end it, or choose another --dir")
	}
	if err != nil {
		return nil, dirError(fmt.Errorf("lock %s: %w", p.dir, err), p.dir)
	}
	for _, name := range []string{session.ProxySocket, session.RedirectSocket} {
		if err := removeSocket(filepath.Join(p.dir, name)); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

// makeDir creates a directory, whatever the umask. One that is there stays as it is: it may be a mounted volume.
func makeDir(path string, mode os.FileMode) error {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		if err = os.Mkdir(path, mode); err == nil {
			err = os.Chmod(path, mode)
		} else if errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err != nil {
		return dirError(fmt.Errorf("create %s: %w", path, err), path)
	}
	return nil
}

func dirError(err error, path string) error {
	return hint.New(err, "the user of aileron serve must be able to write to %s", path)
}

// removeSocket removes what a killed process left. Anything but a socket is not aileron's.
func removeSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && info.Mode().Type() != fs.ModeSocket:
		return hint.New(fmt.Errorf("open the socket %s: there is something else", path), "choose another --dir")
	case err == nil:
		err = os.Remove(path)
	}
	if err != nil {
		return dirError(fmt.Errorf("remove the socket of an earlier process: %w", err), filepath.Dir(path))
	}
	return nil
}

// publicFiles returns the files that the agent reads: the session's root, the bundle of it and the system's roots, and
// the environment as lines that a shell evaluates. All of it is public to the agent.
func publicFiles(s *session.Session) map[string][]byte {
	system, err := ca.SystemBundle()
	if err != nil {
		system = nil // a host without roots trusts the session's alone
	}
	return map[string][]byte{"ca.pem": s.RootPEM(), "bundle.pem": ca.Bundle(system, s.RootPEM()),
		"env": []byte(trust.Exports(Environment(s)))}
}

// publish writes the files that the agent reads, if there is a directory for them.
func (p *place) publish(files map[string][]byte) error {
	if p.public == "" {
		return nil
	}
	for name, data := range files {
		if err := replace(filepath.Join(p.public, name), data); err != nil {
			return dirError(fmt.Errorf("write the files of the agent: %w", err), p.public)
		}
	}
	return nil
}

// replace puts a file that everybody may read at path. It is complete from the first moment on.
func replace(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Environment returns the variables by which a command in the gateway's network namespace uses a session, if the public
// files are where those of aileron's own sandboxes are.
func Environment(s *session.Session) []string {
	clients := trust.Environment{
		Proxy: session.SealedProxy, NoProxy: []string{"localhost", "127.0.0.1", "::1", proxy.APIHost},
		CA: trust.CAFile, Bundle: trust.BundleFile,
	}
	env := append(clients.Variables(), "AILERON_API_URL="+session.SealedAPI, "AILERON_TOKEN="+s.Token(),
		"AILERON_SESSION_ID="+s.ID())
	return append(env, s.Placeholders()...)
}

// close releases the directory. The listeners remove their own sockets.
func (p *place) close() {
	if p.lock != nil {
		_ = p.lock.Close()
	}
}
