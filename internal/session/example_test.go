package session_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/proxy/front"
	"github.com/ALRubinger/aileron/vault"
)

// A session from its beginning to its end, as aileron proxy runs it, and what
// another process sees of it.
func Example() {
	home, err := os.MkdirTemp("", "aileron-home-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(home)
	ctx, stop := context.Background(), session.NewStopRequest()

	s, err := session.Open(ctx, session.Options{
		Home: home, Mode: "proxy", Stop: stop,
		Vault:  vault.Open(filepath.Join(home, "vault")),
		Unlock: func(context.Context) (*vault.Vault, error) { return nil, errors.New("no passphrase") },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := s.Serve(ctx, false); err != nil {
		s.Abandon(ctx)
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Abandon(ctx)
		return
	}
	s.Listen(ctx, l, front.Listener{})

	lister := session.Lister{
		Home:    home,
		OpenLog: func() (*audit.Log, error) { return audit.OpenReader(filepath.Join(home, "audit.db")) },
		Warn:    func(n audit.Notice) { fmt.Println(n.Text) },
	}
	state, err := lister.Find(ctx, s.ID())
	fmt.Println(state.State, err)
	fmt.Println(state.Stop(ctx, home)) // as aileron session stop does

	<-stop.Done()
	fmt.Println(s.Close(ctx, 0, session.StoppedCause))
	state, err = lister.Find(ctx, s.ID())
	fmt.Println(state.State, state.Cause, err)
	// Output:
	// running <nil>
	// <nil>
	// <nil>
	// ended stopped by aileron session stop <nil>
}
