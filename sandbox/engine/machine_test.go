package engine

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/system"
)

// DOCKER_HOST may name a daemon by tcp://.
func TestAnEngineMayBeReachedByTCP(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Host+r.URL.Path)
		_, _ = w.Write([]byte(`{"Rootless":true}`))
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	cli, p, err := dial("docker", "tcp://"+host, Patience{})
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{dialect: docker{}, cli: cli, liveness: p}
	defer e.Close()
	if err := p.ping(t.Context()); err != nil {
		t.Errorf("its ping: %v", err)
	}
	if about, err := e.About(t.Context()); err != nil || !about.Rootless {
		t.Errorf("about it: %+v, %v", about, err)
	}
	if got, want := strings.Join(asked, " "), host+"/_ping "+host+"/info"; got != want {
		t.Errorf("it was asked %q, want %q", got, want)
	}
}

// Podman 4 reports it beside the security options, Docker among them.
func TestARootlessEngineIsRecognised(t *testing.T) {
	for info, want := range map[string]bool{
		`{"SecurityOptions":["name=seccomp,profile=default"],"Rootless":true}`:  true,
		`{"SecurityOptions":["name=seccomp,profile=default","name=rootless"]}`:  true,
		`{"SecurityOptions":["name=seccomp,profile=default"],"Rootless":false}`: false,
		`{"SecurityOptions":["name=seccomp,profile=default"]}`:                  false,
	} {
		asked := 0
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			_, _ = w.Write([]byte(info))
		})}
		socket := filepath.Join(t.TempDir(), "s")
		l := must.Get(net.Listen("unix", socket))(t)
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() { _ = server.Close() })
		cli, p, err := dial("podman", "unix://"+socket, Patience{})
		if err != nil {
			t.Fatal(err)
		}
		e := &Engine{dialect: podman{}, cli: cli, liveness: p}
		t.Cleanup(e.Close)
		for range 2 {
			if got, err := e.About(t.Context()); got.Rootless != want || err != nil {
				t.Errorf("rootless of %s = %v, %v; want %v", info, got.Rootless, err, want)
			}
		}
		if asked != 1 {
			t.Errorf("the engine was asked %d times, want once", asked)
		}
	}
}

func TestAnEngineOfOursIsKnownWithoutAQuestion(t *testing.T) {
	meminfo := filepath.Join(t.TempDir(), "meminfo")
	must.Do(t, os.WriteFile(meminfo, []byte("MemFree: 1 kB\nMemTotal:       2048 kB\n"), 0o600))
	t.Setenv("_CONTAINERS_USERNS_CONFIGURED", "")
	host, known := ownHost(meminfo)
	if os.Geteuid() == 0 && !system.IsAdmin() {
		t.Skip("root without CAP_SYS_ADMIN: Podman is asked")
	}
	if !known || host.Machine.Memory != 2<<20 || host.Machine.CPUs < 1 || host.Rootless != (os.Geteuid() != 0) {
		t.Errorf("the host is %+v, known: %v", host, known)
	}
	if _, known := ownHost(filepath.Join(t.TempDir(), "none")); known {
		t.Error("a machine whose memory is not known is taken for known")
	}
	t.Setenv("_CONTAINERS_USERNS_CONFIGURED", "done")
	if _, known := ownHost(meminfo); known {
		t.Error("in a user namespace of Podman's, where root is rootless, Podman is not asked")
	}
}

// What is known without a question is what Podman reports.
func TestAnEngineOfOursReportsTheSame(t *testing.T) {
	e, err := startService(t.Context(), Patience{})
	if err != nil {
		t.Skip(err)
	}
	defer e.Close()
	host, known := ownHost("/proc/meminfo")
	about := must.Get(e.About(t.Context()))(t)
	if want := (Host{about.Machine, about.Rootless, about.Remapped}); !known || host != want {
		t.Errorf("the host is %+v, known: %v; Podman reports %+v", host, known, want)
	}
}
