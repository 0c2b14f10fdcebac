// Package trust makes the clients in a container trust a root and use a proxy
// without any configuration of their own: with files that are copied into the
// container before it starts, and with environment variables for programs that
// look in no common place.
//
//	installed, err := trust.Install(image, root, trust.Options{Getenv: image.Getenv})
//	env := trust.Environment{Proxy: "http://127.0.0.1:3128", CA: trust.CAFile, Bundle: trust.BundleFile}
//
// [Install] reads the image and changes nothing. [Installed] has the files, each with
// the path that the image's links lead to, so that a distribution's own links
// stay. docs/trust.md lists them, and which client reads which. If the image
// cannot be made to trust the root, the error is an [Error] with the file that
// stands in the way.
//
// An image is not to be trusted: a link out of its file system ends at its root,
// a link into a directory that the sandbox mounts is refused, and a file that is
// merged is bounded and checked first.
//
// Open this file first: Install is the list of what is put into an image. Each kind
// of store has a file: system.go, java.go, browser.go; env.go has the variables.
package trust

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/imagefs"
)

// Files of a session in every sandbox.
const (
	CAFile        = "/etc/aileron/proxy/ca.pem"     // the session's root alone
	BundleFile    = "/etc/aileron/proxy/bundle.pem" // the image's roots and it
	JavaStoreFile = "/etc/aileron/proxy/trust.p12"  // the roots of the image's Java and it
)

// aptSandbox makes apt stay root: in a sandbox it cannot become another user.
const aptSandbox = "// Put here by aileron: a sandbox has no capability to become _apt.\nAPT::Sandbox::User \"root\";\n"

// File is a file to put into a container, or a directory that one of them
// needs. All of them are public.
type File struct {
	Path string // absolute and free of links
	Mode fs.FileMode
	Data []byte
}

// Options describe an image beyond its files. The zero value works.
type Options struct {
	// Getenv returns a variable of the image's own environment. nil: it has none.
	Getenv func(name string) string
	// Mounted are directories where the sandbox does not see the image's files.
	// What is put there would miss the sandbox, or reach the user's project.
	Mounted []string
	// Extra are further files for the container, put where the image's links lead.
	// A Mode of 0 is 0644.
	Extra []File
	// HostRoots returns the roots for an image that has none. nil: this host's.
	HostRoots func() ([]byte, error)
	// Log receives warnings about files of the image that are not used. nil
	// discards them.
	Log *slog.Logger
}

// Installed is what makes the clients of an image trust a root.
type Installed struct {
	Files []File
	// JavaInPlace reports that the stores of the image's Javas are among Files. Otherwise a JVM finds the root by
	// [Environment.JavaOptions] alone.
	JavaInPlace bool
}

// Install returns what makes an image trust a root, which is in PEM. The
// error is an [Error] if a file of the image stands in the way.
func Install(image fs.ReadLinkFS, root []byte, o Options) (Installed, error) {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if o.HostRoots == nil {
		o.HostRoots = ca.SystemBundle
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	in := &installer{image: image, root: root, options: o, taken: map[string]bool{}}
	system := in.bundles()
	in.put(CAFile, root)
	in.put(BundleFile, ca.Bundle(system, root))
	in.java(system)
	in.anchors()
	in.hashLinks()
	in.chromium()
	in.firefox()
	in.apt()
	for _, f := range o.Extra {
		in.putFile(f.Path, f.Mode, f.Data)
	}
	return Installed{in.files, in.javaInPlace}, in.err
}

// installer collects the files for an image. After the first error its methods
// do nothing.
type installer struct {
	image   fs.ReadLinkFS
	root    []byte
	options Options
	taken   map[string]bool // paths of files
	files   []File
	err     error

	javaInPlace bool
}

// apt configures apt, where there is one, to work in a sandbox.
func (in *installer) apt() {
	if in.has("/etc/apt/apt.conf.d") {
		in.put("/etc/apt/apt.conf.d/99aileron", []byte(aptSandbox))
	}
}

// blank reports whether a bundle has nothing in it.
func blank(bundle []byte) bool { return len(bytes.TrimSpace(bundle)) == 0 }

// Error is returned for an image that cannot be made to trust a root.
type Error struct {
	File  string // stands in the way
	Cause error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.File, e.Cause) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// ErrorClass and ErrorReason are for --json.
func (*Error) ErrorClass() string  { return "invalid_request" }
func (*Error) ErrorReason() string { return "preflight_failed" }

// put adds a file where the image's links lead, once. Parents that do not exist
// are added before it.
func (in *installer) put(name string, data []byte) { in.putFile(name, 0, data) }

// putFile is put with a mode; 0 is 0644.
func (in *installer) putFile(name string, mode fs.FileMode, data []byte) {
	place := in.find(name)
	to := "/" + place.Path
	switch {
	case in.err != nil || in.taken[to]:
		return
	case in.mounted(to):
		in.refuse(name, fmt.Errorf("its links lead to %s, where the sandbox has something else", to))
		return
	case place.Exists() && !place.Info.Mode().IsRegular():
		in.refuse(name, errors.New("it is not a file, and the session's CA has to stand there"))
		return
	}
	for _, dir := range place.Missing {
		in.add(File{Path: "/" + dir, Mode: fs.ModeDir | 0o755})
	}
	in.add(File{Path: to, Mode: cmp.Or(mode, 0o644), Data: data})
}

func (in *installer) add(f File) {
	if !in.taken[f.Path] {
		in.taken[f.Path] = true
		in.files = append(in.files, f)
	}
}

// find returns where a name of the image leads.
func (in *installer) find(name string) imagefs.Place {
	if in.err != nil {
		return imagefs.Place{}
	}
	place, err := imagefs.Resolve(in.image, inFS(name))
	if err != nil {
		in.refuse(name, err)
	}
	return place
}

func (in *installer) has(name string) bool { return in.find(name).Exists() }

func (in *installer) read(name string) ([]byte, error) { return imagefs.ReadFile(in.image, inFS(name)) }

// inFS is an absolute name in the form of io/fs.
func inFS(name string) string { return strings.TrimPrefix(name, "/") }

// mounted reports whether the sandbox has something else at a path.
func (in *installer) mounted(path string) bool {
	for _, dir := range in.options.Mounted {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// refuse ends the installation: a file of the image stands in the way.
func (in *installer) refuse(name string, cause error) {
	in.fail(hint.New(&Error{name, withoutPath(cause)},
		"rebuild the image with its distribution's ca-certificates package as it is, or without %s", name))
}

// withoutPath strips the path of an error of package fs: it is named already.
func withoutPath(err error) error {
	if outer, ok := errors.AsType[*fs.PathError](err); ok {
		return outer.Err
	}
	return err
}

func (in *installer) fail(err error) {
	if in.err == nil {
		in.err = err
	}
}
