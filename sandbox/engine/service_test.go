package engine

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A service of ours has an idle time only for the grace that comes with it.
func TestAHeldServiceStaysAndOneThatIsReleasedEnds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: needs an engine")
	}
	if _, err := exec.LookPath("podman"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no podman, and in CI this test must run; scripts/prepare installs it")
		}
		t.Skip("there is no podman: scripts/prepare installs it")
	}
	dir, err := os.MkdirTemp("", "held-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	conf := filepath.Join(dir, "containers.conf")
	if err := os.WriteFile(conf, podmanConf(), 0o600); err != nil {
		t.Fatal(err)
	}
	serve := func(name string) (socket string, ended <-chan struct{}) {
		socket = filepath.Join(dir, name)
		cmd := exec.Command("podman", "system", "service", "--time", "2", "unix://"+socket)
		if os.Getenv("CONTAINERS_CONF") == "" {
			cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+conf)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { _ = cmd.Wait(); close(done) }()
		t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
		return socket, done
	}
	var conn net.Conn
	var ended <-chan struct{}
	for try := 0; conn == nil; try++ { // on a busy machine one may end before it is held
		var socket string
		socket, ended = serve(fmt.Sprint("held-", try))
		for over := false; conn == nil && !over; {
			conn, _ = holdService(t.Context(), socket)
			select {
			case <-ended:
				conn, over = nil, true
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	defer conn.Close()
	// Two that nobody holds, one after the other, take longer than it would.
	for _, name := range []string{"first", "second"} {
		_, over := serve(name)
		<-over
	}
	select {
	case <-ended:
		t.Fatal("the service has ended, although it is held")
	default:
	}
	_ = conn.Close()
	<-ended
}
