package session

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/hosttrust"
	"github.com/ALRubinger/aileron/spec"
)

// Only a session of this host has a root that programs of this host may trust, and it is for what connectors declare.
func TestOnlyASessionOfTheHostHasARootForTheHost(t *testing.T) {
	for mode, want := range map[string]bool{"proxy": true, "off": true, "podman": false, "docker": false} {
		o := newOptions(t)
		o.Mode = mode
		install(t, o.Home)
		s := open(t, o)
		c, err := State{ID: s.ID(), State: "running"}.Certificate(t.Context(), o.Home)
		must.Do(t, err)
		if slices.Contains(c.Names, "api.github.com") != want || len(c.Names) > 0 != want ||
			(c.PEM == string(s.RootPEM())) == want {
			t.Errorf("%s: the names are %q, want some: %v", mode, c.Names, want)
		}
		s.Abandon(t.Context())
		if _, err := (State{ID: s.ID(), State: "ended"}).Certificate(t.Context(), o.Home); err == nil ||
			!strings.Contains(err.Error(), "its CA ended with it") {
			t.Errorf("of an ended session: %v", err)
		}
	}
}

// Each handshake sends the names: more than a few hundred are no names at all.
func TestTheNamesOfAHostRootAreBounded(t *testing.T) {
	for n, want := range map[int]int{maxHostNames: maxHostNames, maxHostNames + 1: 0} {
		c := &spec.Connector{FQN: "github://acme/many", Version: "1.0.0"}
		for i := range n {
			c.Tools = append(c.Tools, spec.Tool{Operations: []*spec.Operation{{
				Connector: c, Hosts: []spec.HostPattern{{Name: fmt.Sprintf("h%d.example", i), Port: 443}},
			}}})
		}
		index := must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
		if got := len(Options{Mode: "proxy"}.hostNames(index)); got != want {
			t.Errorf("%d hosts make %d names, want %d", n, got, want)
		}
	}
}

// Only a session of this host that runs has a root that stores may have, and it is the one that ca show prints.
func TestOnlyARunningSessionOfTheHostHasARootToTrust(t *testing.T) {
	for _, c := range []struct{ mode, state, reason string }{
		{"proxy", "running", ""}, {"off", "running", ""},
		{"podman", "running", "is a sandbox's, which can vouch for any name"},
		{"proxy", "ended", "its CA ended with it"},
		{"proxy", "unclean", "its CA ended with it"},
	} {
		o := newOptions(t)
		o.Mode = c.mode
		install(t, o.Home)
		s := open(t, o)
		root, err := State{ID: s.ID(), Mode: c.mode, State: c.state}.HostRoot(t.Context(), o.Home)
		if (err == nil) != (c.reason == "") || err != nil && !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s, %s: %v, want %q", c.mode, c.state, err, c.reason)
		}
		if err == nil && (!root.Cert.Equal(s.ca.Host().Root) || root.Session != s.ID() || len(root.Names) == 0) {
			t.Errorf("%s: the root is %v", c.mode, root)
		}
		if err != nil && hint.Of(err) == "" {
			t.Errorf("%s, %s: %v has no hint", c.mode, c.state, err)
		}
		s.Abandon(t.Context())
	}
	o := newOptions(t) // no connector: no name
	s := open(t, o)
	if _, err := (State{ID: s.ID(), Mode: "proxy", State: "running"}).HostRoot(t.Context(), o.Home); err == nil ||
		!strings.Contains(err.Error(), "can vouch for any name") {
		t.Errorf("without connectors: %v", err)
	}
}

// A directory that looks like a session's, with a socket that serves what its maker wants, gets no root into a store
// but one of the form of a session's: and none at all if the maker is another user.
func TestAHostileSessionDirectoryIsNotTrusted(t *testing.T) {
	const id = "01FAKE"
	hostile := must.Get(ca.NewSession(ca.Options{Session: id, HostNames: []string{"a.example"}}))(t)
	other, err := ca.NewSession(ca.Options{Session: "01OTHER", HostNames: []string{"a.example"}})
	must.Do(t, err)
	names := []string{"api.github.com"}
	good := describeCertificate(id, hostile.Host().Root, names)
	for name, c := range map[string]struct {
		answer Certificate
		uid    int
		reason string
	}{
		"a root that can vouch for any name": {describeCertificate(id, hostile.Root(), names), 0,
			"not a root for this host"},
		"the root of another session": {describeCertificate(id, other.Host().Root, names), 0,
			"that of the session 01OTHER"},
		"no certificate": {Certificate{Names: names, PEM: "BEGIN CERTIFICATE"}, 0,
			"not one certificate"},
		"a process of another user":                    {good, 65534, "not a process of this user"},
		"one of the form of a session's, of this user": {good, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.uid != 0 && os.Geteuid() != 0 {
				t.Skip("only root becomes another user")
			}
			home, err := os.MkdirTemp("/tmp", "hostile-") // short, for the socket
			must.Do(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(home) })
			dir := filepath.Join(home, "sessions", id)
			must.Do(t, os.MkdirAll(dir, 0o777))
			for _, d := range []string{home, filepath.Dir(dir), dir} {
				must.Do(t, os.Chmod(d, 0o777))
			}
			l := listenAs(t, uintptr(c.uid), filepath.Join(dir, "control.sock"))
			answer := func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(c.answer) }
			server := &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: 5 * time.Minute}
			go func() { _ = server.Serve(l) }()
			t.Cleanup(func() { _ = server.Close() })
			_, err = State{ID: id, Mode: "proxy", State: "running"}.HostRoot(t.Context(), home)
			if (err == nil) != (c.reason == "") || err != nil && !strings.Contains(err.Error(), c.reason) {
				t.Errorf("HostRoot: %v, want %q", err, c.reason)
			}
		})
	}
}

// listenAs listens at a path from a thread of another effective uid, which is what the kernel reports of the socket; 0
// is this user.
func listenAs(t *testing.T, uid uintptr, path string) net.Listener {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	keep := ^uintptr(0)
	if uid != 0 {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, keep, uid, keep); errno != 0 {
			t.Fatal(errno)
		}
		defer func() {
			if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, keep, 0, keep); errno != 0 {
				panic(errno)
			}
		}()
	}
	fd := must.Get(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
	must.Do(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	must.Do(t, unix.Listen(fd, 16))
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	l := must.Get(net.FileListener(f))(t)
	return l
}

// The end of a session takes its root off the account before its last row, and after its control socket: no command
// gets the root from it any more.
func TestTheEndOfASessionTakesItsRootOffTheAccount(t *testing.T) {
	o := newOptions(t)
	install(t, o.Home)
	s := open(t, o)
	must.Do(t, s.Serve(t.Context(), false))
	profile := t.TempDir() // of a browser, without a database: it has no root
	dir := filepath.Join(o.Home, "trusted")
	must.Do(t, os.Mkdir(dir, 0o700))
	c := describeCertificate(s.ID(), s.ca.Host().Root, nil)
	raw := must.Get(json.Marshal(map[string]any{"format": 1, "session_id": s.ID(), "sha256": c.SHA256, "pem": c.PEM,
		"not_after": c.NotAfter, "stores": []ca.Store{{Kind: ca.NSSStore, Path: profile}}}))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, s.ID()+".json"), raw, 0o600))
	l := hosttrust.Ledger{Home: o.Home}
	if got := l.Records(); len(got) != 1 || got[0].Err != nil {
		t.Fatalf("the records are %+v", got)
	}
	// A command is at work: the session waits for it, and hands its root to no other.
	command := must.Get(l.Locks.Lock(filepath.Join(dir, "lock"), unix.LOCK_EX))(t)
	closed := make(chan error, 1)
	go func() { closed <- s.Close(t.Context(), 0, "ended") }()
	state := State{ID: s.ID(), Mode: "proxy", State: "running"}
	for end := time.Now().Add(5 * time.Minute); ; {
		if _, err := state.HostRoot(t.Context(), o.Home); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Error("a session that ends hands out its root")
			break // the account is given back: the session waits for it
		}
	}
	if !Alive(o.Home, s.ID()) || len(l.Records()) != 1 {
		t.Error("the session has not waited for the account")
	}
	must.Do(t, command.Close())
	must.Do(t, <-closed)
	if got := l.Records(); len(got) != 0 {
		t.Errorf("the records are %+v", got)
	}
	var events []string
	for _, r := range rows(t, o.Home) {
		if strings.HasPrefix(string(r.Event), "ca.untrust") || r.Event == audit.EventSessionEnded {
			events = append(events, string(r.Event)+" "+string(r.Source))
		}
	}
	if got := strings.Join(events,
		", "); got != "ca.untrust.started launcher, ca.untrusted launcher, session.ended launcher" {
		t.Errorf("the events are %s", got)
	}
}
