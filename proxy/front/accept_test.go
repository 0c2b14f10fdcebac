package front

import (
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy"
)

func TestConnectionsOverTheCapAreTold(t *testing.T) {
	s := newSession(t, Listener{}, func(c *proxy.Config) { c.Limits.Connections = 1 })
	first := s.connect("api.good.example:443") // which takes the only place
	const get = "GET http://plain.good.example/ HTTP/1.1\r\nHost: plain.good.example\r\n\r\n"
	conn := s.dial(get + get)
	all, err := io.ReadAll(conn)
	if n := strings.Count(string(all), "HTTP/1.1 429"); n != 1 || !strings.Contains(string(all), "Retry-After") {
		t.Errorf("got %d answers (%v): %.400q", n, err, all)
	}
	must.Do(t, first.Close())
	for range testPatience.Milliseconds() { // until its place is free
		if res, _ := s.say(get); res.StatusCode == 407 {
			return
		}
	}
	t.Error("after the burst nothing is served")
}

// What waits for nothing makes room in the lobby for what asks.
func TestSilentClientsDoNotKeepOthersFromBeingTold(t *testing.T) {
	before := deniedWithin
	t.Cleanup(func() { deniedWithin = before }) // when the session has ended
	deniedWithin = 2 * testPatience             // they do not leave by themselves
	s := newSession(t, Listener{}, func(c *proxy.Config) { c.Limits.Connections = 1 })
	s.connect("api.good.example:443")
	s.front.lobby.evicts = testPatience // of the goroutine that makes room
	for range cap(s.front.lobby.places) + 3 {
		s.dial("")
	}
	res, body := s.say(connectTo("api.good.example:443"))
	s.denied("one more", res, body, proxy.ReasonConcurrency)
}

// starved is a listener in a process whose last descriptor is the spare one.
type starved struct {
	net.Listener
	spare **os.File
}

func (l starved) Accept() (net.Conn, error) {
	if _, err := (*l.spare).Stat(); err == nil {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// A connection for which the whole process has no descriptor is refused, and
// does not wait.
func TestAProcessOutOfDescriptorsResponds(t *testing.T) {
	var spare *os.File
	s := newFront(t, unchanged)
	s.front.files.Open = func() (f *os.File, err error) {
		if spare != nil {
			return nil, syscall.EMFILE
		}
		spare, err = os.Open(os.DevNull)
		return spare, err
	}
	s.listen(Listener{}, func(l net.Listener) net.Listener { return starved{l, &spare} })
	res, body := s.say(connectTo("api.good.example:443"))
	s.denied("a client", res, body, proxy.ReasonDescriptors)
}
