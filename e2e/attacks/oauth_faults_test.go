package attacks

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// The directory of the binding of identityProvider.login, and its lock.
func bindingsOf(p *person) string {
	return filepath.Join(p.home, "vault", "bindings", "oauth2", "oauth")
}
func lockOf(p *person) string { return filepath.Join(bindingsOf(p), "default.lock") }

// oau04 kills sessions at the moments of a renewal. The provider replaces the refresh token with each.
func oau04(c *testCase) {
	for _, m := range []struct {
		when   string
		mute   string // a host that takes connections, and says nothing
		next   int    // the status of the next session's requests
		begun  bool   // the renewal is in the log
		asked  int    // token requests of both sessions
		locked bool   // by another process
		holds  bool   // the provider keeps its answer
	}{
		{when: "before it begins", locked: true, next: 200, asked: 1},
		{when: "before its request leaves", mute: "idp.good.test", begun: true, next: 403, asked: 0},
		{when: "before its answer arrives", holds: true, begun: true, next: 403, asked: 1},
		{when: "before its token is used", mute: "oauth.good.test", begun: true, next: 200, asked: 1},
	} {
		i := newIdentityProvider(c)
		p := i.login(c)
		reached, release, flags := make(chan struct{}), make(chan struct{}), i.flags()
		if m.mute != "" {
			flags = muted(c, flags, m.mute, reached)
		}
		if m.holds {
			i.other = func(http.ResponseWriter) { close(reached); <-release }
		}
		free := func() {}
		if m.locked {
			f := must.Get(os.OpenFile(lockOf(p), os.O_CREATE|os.O_RDWR, 0o600))(c.t)
			must.Do(c.t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
			free = func() { _ = f.Close() }
		}
		s := p.start(flags...)
		asked := make(chan answer, 1)
		go func() { asked <- i.ask(s) }()
		c.eventually(m.when, func() bool {
			select {
			case <-reached:
				return true
			default:
				return m.locked && s.opened(lockOf(p))
			}
		})
		s.kill()
		if a := <-asked; a.err == nil {
			c.failf("%s: the session that was killed answers %s", m.when, a)
		}
		free()
		close(release)
		i.other = nil
		if begun := slices.ContainsFunc(p.rows(0), func(r audit.Row) bool {
			return r.Event == audit.EventBindingRefreshStarted
		}); begun != m.begun {
			c.failf("%s: the log has the intent of the renewal: %v", m.when, begun)
		}

		s = p.start(i.flags()...)
		for range 3 {
			a := i.ask(s)
			if a.status != m.next || a.status != 200 && (a.reason != "credential_unusable" ||
				!strings.Contains(a.message, "aileron binding rebind oauth2/oauth/default")) {
				c.failf("%s: the next session answers %s", m.when, a)
			}
		}
		if i.renewals() != m.asked || i.reuses() != 0 || slices.Contains(i.used(), "access-0") {
			c.failf("%s: %d token requests, %d of a used token, and the service got %v", m.when, i.renewals(), i.reuses(),
				i.used())
		}
	}
}

// muted returns flags with which host is one that takes connections and says nothing. The first one closes reached.
func muted(c *testCase, flags []string, host string, reached chan struct{}) []string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(c.t)
	c.t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		close(reached)
		_, _ = io.Copy(io.Discard, conn)
	}()
	changed := slices.Clone(flags)
	for i, f := range changed {
		if strings.HasPrefix(f, host+":443:") {
			changed[i] = host + ":443:" + l.Addr().String()
		}
	}
	return changed
}

// opened reports whether the session has opened a file.
func (s *session) opened(path string) bool {
	links, _ := filepath.Glob(procFile(s, "fd/*"))
	return slices.ContainsFunc(links, func(link string) bool {
		to, _ := os.Readlink(link)
		return to == path
	})
}

// oau10 fills the disk of the binding: before a renewal, and between its request and the end of it.
func oau10(c *testCase) {
	i := newIdentityProvider(c)
	p := i.login(c)
	dir, aside := bindingsOf(p), p.dir+"/aside"
	must.Do(c.t, os.Rename(dir, aside))
	must.Do(c.t, os.Mkdir(dir, 0o700))
	must.Do(c.t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,nr_inodes=64,mode=0700"))
	defer func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }()
	harness.Copy(c.t, aside+"/default.json", dir)

	// Without room nothing is asked, and the token that is there is used.
	fill := filepath.Join(dir, "fill")
	f := must.Get(os.Create(fill))(c.t)
	for err := error(nil); err == nil; {
		_, err = f.Write(make([]byte, 4096))
	}
	_ = f.Close()
	s := p.start(i.flags()...)
	i.get(c, s)
	if i.renewals() != 0 || !slices.Equal(i.used(), []string{"access-0"}) {
		c.failf("on a full disk: %d token requests, and the service got %v", i.renewals(), i.used())
	}
	if said := string(s.logs()); !strings.Contains(said, "no space left") || !strings.Contains(said, "binding rebind") {
		c.failf("on a full disk the session says %s", said)
	}
	s.stop() // one session warns once
	must.Do(c.t, os.Remove(fill))

	// The provider answers, and there is no inode for a new file.
	i.before = func() {
		for n := 0; ; n++ {
			f, err := os.Create(filepath.Join(dir, fmt.Sprint("inode-", n)))
			if err != nil {
				if !errors.Is(err, syscall.ENOSPC) {
					c.failf("fill the disk: %v", err)
				}
				return
			}
			_ = f.Close()
		}
	}
	s = p.start(i.flags()...)
	i.get(c, s)
	if said := string(s.logs()); i.renewals() != 1 || !strings.Contains(said, "keep the new token") ||
		!strings.Contains(said, "no space left") {
		c.failf("without room for an answer: %d token requests, and the session says %s", i.renewals(), said)
	}
	if used := i.used(); slices.Contains(used, "access-1") {
		c.failf("a token was used that is not on disk: %v", used)
	}
	files := must.Get(filepath.Glob(filepath.Join(dir, "inode-*")))(c.t)
	for _, file := range files {
		must.Do(c.t, os.Remove(file))
	}
	c.eventually("the token is kept, and used", func() bool { i.get(c, s); return slices.Contains(i.used(), "access-1") })
	s.kill()
	i.get(c, p.start(i.flags()...)) // another session has it from the disk
	if i.renewals() != 1 || i.reuses() != 0 {
		c.failf("%d token requests, %d of a used token", i.renewals(), i.reuses())
	}
	must.Do(c.t, os.Rename(aside, p.dir+"/vault-before"))
}

// oau13 has a provider whose clock is ten minutes before or behind this one's. What it says of a token's life is
// relative, so that only what it does counts: it refuses a token that is fresh here.
func oau13(c *testCase) {
	for _, ahead := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Fri, 01 Jan 2100 00:00:00 GMT"} {
		i := newIdentityProvider(c)
		i.date = ahead
		p := i.login(c)
		s := p.start(i.flags()...)
		for range 3 {
			i.get(c, s)
		}
		if i.renewals() != 1 || !slices.Equal(i.used(), []string{"access-1", "access-1", "access-1"}) {
			c.failf("its date is %s: %d token requests, and the service got %v", ahead, i.renewals(), i.used())
		}
		i.refuses = true
		for range 20 {
			if a := i.ask(s); a.status != 401 {
				c.failf("a service that refuses each token: %s", a)
			}
		}
		if i.renewals() != 1 {
			c.failf("its clock is ahead: %d token requests within a minute", i.renewals())
		}
	}
}
