package engine

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAnEngineOfOursIsKnownWithoutAQuestion(t *testing.T) {
	meminfo := filepath.Join(t.TempDir(), "meminfo")
	if err := os.WriteFile(meminfo, []byte("MemFree: 1 kB\nMemTotal:       2048 kB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("_CONTAINERS_USERNS_CONFIGURED", "")
	host, known := ownHost(meminfo)
	if os.Geteuid() == 0 && !isAdmin() {
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
	about, err := e.About(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := (Host{about.Machine, about.Rootless}); !known || host != want {
		t.Errorf("the host is %+v, known: %v; Podman reports %+v", host, known, want)
	}
}
