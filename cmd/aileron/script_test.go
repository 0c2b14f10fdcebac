package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/ca"
)

// TestStories runs testdata/script: what a person does with the command line, and what they see. In each story
//
//   - AILERON_HOME is $WORK/home, which does not exist yet, and there is no keyring and no passphrase;
//   - tracker/ is the connector github://acme/tracker, of which testdata/tracker has the files;
//   - "origin" starts https://api.tracker.example on this machine, whose only valid token is in the file token, and
//     sets $RESOLVE and $ORIGIN_CA for --resolve and --upstream-ca;
//   - "await FILE" waits until a program in the background has written FILE;
//   - get and audit-rows are programs, see [TestMain].
//
// Run one story with go test ./cmd/aileron -run Stories/first_use.
func TestStories(t *testing.T) {
	rows := &written{}
	t.Cleanup(func() { rows.judge(t) })
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			for name, value := range map[string]string{"AILERON_HOME": env.WorkDir + "/home", "XDG_RUNTIME_DIR": env.WorkDir,
				"DBUS_SESSION_BUS_ADDRESS": "", "TZ": "UTC", "TOKEN": storyToken} {
				env.Setenv(name, value)
			}
			env.Vars = append(env.Vars, endAtOnce)
			if err := os.WriteFile(filepath.Join(env.WorkDir, "token"), []byte(storyToken+"\n"), 0o600); err != nil {
				return err
			}
			env.Defer(func() {
				if strings.HasPrefix(filepath.Base(env.WorkDir), "script-audit_") {
					return // their logs are made up, or damaged
				}
				if err := rows.read(env.WorkDir + "/home"); err != nil {
					t.Errorf("%s: %v", filepath.Base(env.WorkDir), err)
				}
			})
			return os.CopyFS(filepath.Join(env.WorkDir, "tracker"), os.DirFS("testdata/tracker"))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"origin": startOrigin, "await": awaitFile},
	})
}

// written are the audit rows of all stories.
type written struct {
	mu   sync.Mutex
	json bytes.Buffer
}

// read adds the rows of a home, which may have none.
func (w *written) read(home string) error {
	l, err := audit.OpenReader(filepath.Join(home, "audit.db"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	enc := json.NewEncoder(&w.json)
	return errors.Join(l.Each(context.Background(), audit.Filter{}, func(r audit.Row) error { return enc.Encode(r) }),
		l.Close())
}

// judge reports the rows that do not fit their schema.
func (w *written) judge(t *testing.T) {
	judge := exec.Command("go", "run", "../../e2e/rowschema/judge")
	judge.Env = append(os.Environ(), "CGO_ENABLED=0")
	judge.Stdin = &w.json
	if out, err := judge.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// storyToken is the credential of the stories: no program's output may contain it.
const storyToken = "tracker-secret-0123456789abcdef"

// startOrigin is the command origin of the stories.
func startOrigin(ts *testscript.TestScript, _ bool, _ []string) {
	authority, err := ca.NewSession(ca.Options{Session: "story"})
	ts.Check(err)
	roots := ts.MkAbs("origin-ca.pem")
	ts.Check(os.WriteFile(roots, authority.RootPEM(), 0o600))
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return authority.Leaf("api.tracker.example") },
		MinVersion:     tls.VersionTLS12,
	})
	ts.Check(err)
	server := &http.Server{Handler: http.HandlerFunc(serveTracker), ReadHeaderTimeout: patience}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	ts.Defer(func() {
		_ = server.Close()
		<-served
	})
	at, _ := l.Addr().(*net.TCPAddr)
	ts.Setenv("RESOLVE", "api.tracker.example:443:"+at.String())
	ts.Setenv("ORIGIN_CA", roots)
}

// serveTracker answers a request that carries the token with what it asked for, and others with 401.
func serveTracker(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+storyToken {
		http.Error(w, "no valid token", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if model, ok := strings.CutPrefix(r.URL.Path, "/v1/chat/"); ok { // a model that is named in the path
		_ = json.NewEncoder(w).Encode(map[string]any{"model": model,
			"usage": map[string]int{"input_tokens": 1000, "output_tokens": 250, "cached_tokens": 40}})
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"path": r.URL.Path, "authorization": r.Header.Get("Authorization")})
}

// awaitFile is the command await of the stories.
func awaitFile(ts *testscript.TestScript, _ bool, args []string) {
	for end := time.Now().Add(patience); ; {
		if info, err := os.Stat(ts.MkAbs(args[0])); err == nil && info.Size() > 0 {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s was not written", args[0])
		}
		<-time.After(5 * time.Millisecond)
	}
}
