package unixsocket_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/unixsocket"
)

func TestASocketOfAnyPathIsReached(t *testing.T) {
	for name, dir := range map[string]string{"short": "d", "long": strings.Repeat("long/", 40)} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), dir, "s.sock")
			must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
			l := must.Get(unixsocket.Listen(path, 0o640))(t)
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("the socket is %v, %v; want mode 0640", info, err)
			}
			go func() {
				if conn, err := l.Accept(); err == nil {
					_, _ = io.WriteString(conn, "hello")
					_ = conn.Close()
				}
			}()
			conn := must.Get(unixsocket.Dial(t.Context(), path))(t)
			if got, err := io.ReadAll(conn); err != nil || string(got) != "hello" {
				t.Errorf("read %q, %v", got, err)
			}
			_ = conn.Close()
			_ = l.Close()
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after Close the socket is still there: %v", err)
			}
		})
	}
}

func TestASocketInAMissingDirectoryIsRefused(t *testing.T) {
	for _, dir := range []string{"none", strings.Repeat("none/", 40)} {
		path := filepath.Join(t.TempDir(), dir, "s.sock")
		if _, err := unixsocket.Listen(path, 0o600); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Listen: %v, want ErrNotExist", err)
		}
		if _, err := unixsocket.Dial(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Dial: %v, want ErrNotExist", err)
		}
	}
}
