package sandbox

import (
	"net"
	"net/http"
	"path/filepath"
	"testing"
)

// Podman 4 names it beside the security options, Docker among them.
func TestARootlessEngineIsToldByItsOwnWord(t *testing.T) {
	for info, want := range map[string]bool{
		`{"SecurityOptions":["name=seccomp,profile=default"],"Rootless":true}`:  true,
		`{"SecurityOptions":["name=seccomp,profile=default","name=rootless"]}`:  true,
		`{"SecurityOptions":["name=seccomp,profile=default"],"Rootless":false}`: false,
		`{"SecurityOptions":["name=seccomp,profile=default"]}`:                  false,
	} {
		asked := 0
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { asked++; _, _ = w.Write([]byte(info)) })}
		socket := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() { _ = server.Close() })
		cli, p, err := dial("podman", "unix://"+socket, Patience{})
		if err != nil {
			t.Fatal(err)
		}
		e := &Engine{kind: "podman", cli: cli, pulse: p}
		t.Cleanup(e.Close)
		for range 2 {
			if got, err := e.rootless(t.Context()); got != want || err != nil {
				t.Errorf("rootless of %s = %v, %v; want %v", info, got, err, want)
			}
		}
		if asked != 1 {
			t.Errorf("the engine was asked %d times, want once", asked)
		}
	}
}
