package sandbox

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// first is a stream that keeps when its first byte came.
type first struct {
	once sync.Once
	at   time.Time
}

func (f *first) Write(p []byte) (int, error) {
	f.once.Do(func() { f.at = time.Now() })
	return len(p), nil
}

// BenchmarkStart measures what the gateway adds to the start of a sandbox: the
// time until its command writes a word, with the gateway and with no network at
// all, taken in turns. The medians are the result:
//
//	go test -run - -bench Start -benchtime 10x ./sandbox
func BenchmarkStart(b *testing.B) {
	binary := filepath.Join(b.TempDir(), "aileron")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "../cmd/aileron")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for _, kind := range []string{"podman", "docker"} {
		b.Run(kind, func(b *testing.B) {
			e, err := Find(b.Context(), kind, engine.Patience{})
			if err != nil {
				b.Skip(err)
			}
			defer e.Close()
			image := BaseImage()
			if _, err := e.EnsureImage(b.Context(), image, "auto", io.Discard); err != nil {
				b.Fatal(err)
			}
			var plain, sealed []time.Duration
			for b.Loop() {
				plain = append(plain, startTime(b, e, image, binary, false))
				sealed = append(sealed, startTime(b, e, image, binary, true))
			}
			slices.Sort(plain)
			slices.Sort(sealed)
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
			with, without := sealed[len(sealed)/2], plain[len(plain)/2]
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ms(without), "ms/plain")
			b.ReportMetric(ms(with), "ms/sealed")
			b.ReportMetric(ms(with-without), "ms/added")
		})
	}
}

func startTime(b *testing.B, e *Engine, image Image, binary string, sealed bool) time.Duration {
	b.Helper()
	dir, err := os.MkdirTemp("", "start-") // a socket's path must be short
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil {
		b.Fatal(err)
	}
	for _, name := range socketNames {
		l, err := net.Listen("unix", filepath.Join(dir, name))
		if err == nil {
			defer l.Close()
			err = os.Chmod(filepath.Join(dir, name), 0o666)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	out := &first{}
	box := Box{
		Spec:   Spec{Image: image, Command: []string{"echo", "up"}, Dir: b.TempDir()},
		Uplink: Uplink{Session: "bench-" + filepath.Base(dir), Sockets: dir, Binary: binary, Stdout: out, Stderr: io.Discard},
		mounts: dir,
	}
	seccomp, err := e.Seccomp(dir, seccompProfile)
	if err != nil {
		b.Fatal(err)
	}
	var parts []*engine.Container
	defer func() {
		if err := e.RemoveAll(context.Background(), parts); err != nil {
			b.Error(err)
		}
	}()
	begin := time.Now()
	var gateway *engine.Container
	var id string
	if sealed {
		made, err := e.createGateway(b.Context(), box, seccomp)
		if err != nil {
			b.Fatal(err)
		}
		gateway = &engine.Container{ID: made}
		parts = append(parts, gateway)
		if err := e.startGateway(b.Context(), gateway); err != nil {
			b.Fatal(err)
		}
		created, err := e.createBox(b.Context(), box, gateway, seccomp)
		if err != nil {
			b.Fatal(err)
		}
		id = created.id
	} else {
		config, _, err := e.boxConfig(b.Context(), box, seccomp)
		if err != nil {
			b.Fatal(err)
		}
		config.Network = "none"
		if id, err = e.Create(b.Context(), config); err != nil {
			b.Fatal(err)
		}
	}
	parts = append(parts, &engine.Container{ID: id})
	if code, err := e.runBox(b.Context(), box, parts[len(parts)-1], gateway); code != 0 || err != nil {
		b.Fatalf("the box ended with %d, %v", code, err)
	}
	return out.at.Sub(begin)
}
