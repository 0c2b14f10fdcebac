// Package retries tries the table of docs/errors.md that states which clients send a denied request again: real clients
// against a stub that denies everything.
package retries

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

// row is a row of the table.
type row struct {
	status    int
	retriable bool
	again     map[string]bool // by client
}

// table returns the rows of docs/errors.md.
func table(t *testing.T) (rows []row) {
	t.Helper()
	manual := string(must.Get(os.ReadFile("../../docs/errors.md"))(t))
	_, section, found := strings.Cut(manual, "\n## Which clients try again\n")
	if !found {
		t.Fatal("docs/errors.md has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var clients []string
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		if clients == nil {
			clients = cells[3:]
			continue
		}
		r := row{status: must.Get(strconv.Atoi(cells[0]))(t), retriable: cells[1] == "yes", again: map[string]bool{}}
		for i, client := range clients {
			r.again[strings.Trim(client, "`")] = cells[3+i] == "yes"
		}
		rows = append(rows, r)
	}
	return rows
}

// stub denies every request as the proxy does, with the status and the advice that its path begins with, and counts
// those that are equal.
type stub struct {
	mu   sync.Mutex
	seen map[string]int
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var status int
	var retriable bool
	name := strings.SplitN(r.URL.Path, "/", 3)[1]
	if _, err := fmt.Sscanf(name, "%d-%t", &status, &retriable); err != nil {
		status = http.StatusNotFound
	}
	s.mu.Lock()
	s.seen[r.URL.Path+" "+r.Header.Get("Accept")]++ // npm asks for another form of what is not there in one
	s.mu.Unlock()
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Should-Retry", strconv.FormatBool(retriable))
	if retriable && (status == 503 || status == 429) {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"error":{"class":"x","message":"aileron: denied","retriable":false}}`)
}

// most returns how often the most frequent request below a path came.
func (s *stub) most(below string) (most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for seen, n := range s.seen {
		if strings.HasPrefix(seen, below) {
			most = max(most, n)
		}
	}
	return most
}

// clients are the commands, which wait as little as they can between two attempts. ORIGIN is the stub, BASE a URL
// below it.
var clients = map[string]string{
	"npm": `npm view left-pad --registry BASE/ --fetch-retry-mintimeout 1 --fetch-retry-maxtimeout 1`,
	"pip": `python3 -m pip download --retries 1 --no-cache-dir --no-deps --index-url BASE/simple x`,
	"cargo": `mkdir src && : >src/lib.rs &&
		printf '[package]\nname="a"\nversion="0.0.0"\n[dependencies]\nb={version="1",registry="x"}\n' >Cargo.toml &&
		CARGO_NET_RETRY=1 CARGO_REGISTRIES_X_INDEX=sparse+BASE/ cargo generate-lockfile`,
	"git":          `git ls-remote BASE/x.git`,
	"gh":           `GH_TOKEN=x GH_HOST=github.localhost http_proxy=ORIGIN gh api NAME/x`,
	"curl --retry": `curl -sS --retry 1 BASE/x`,
	"SDKs": `ln -s "$SDKS/node_modules" . && node -e '
		const body = {model: "m", max_tokens: 9, messages: [{role: "user", content: "hi"}]}, tries = []
		for (const sdk of ["openai", "@anthropic-ai/sdk"]) {
			const c = new (require(sdk).default)({apiKey: "x", baseURL: "BASE/" + sdk, maxRetries: 1})
			tries.push((c.chat ? c.chat.completions : c.messages).create(body))
		}
		Promise.allSettled(tries).then(() => process.exit())'`,
}

// AILERON_TEST_SDKS is a directory with openai and @anthropic-ai/sdk in its node_modules.
func TestClientsTryAgainWhatTheManualSays(t *testing.T) {
	if testing.Short() {
		t.Skip("clients wait before they try again")
	}
	s := &stub{seen: map[string]int{}}
	origin := httptest.NewServer(s)
	t.Cleanup(origin.Close)
	rows := table(t)
	for client, command := range clients {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			harness.Turn(t)
			if program := strings.Fields(client)[0]; client != "SDKs" && client != "pip" {
				// rustup's cargo is a program that may have nothing to run.
				if out, err := run(t, program+" --version"); err != nil {
					t.Skipf("%s does not run here: %v %.200s", program, err, out)
				}
			}
			if client == "SDKs" && os.Getenv("AILERON_TEST_SDKS") == "" {
				t.Skip("AILERON_TEST_SDKS is not set")
			}
			for _, r := range rows {
				if _, stated := r.again[client]; !stated {
					t.Fatalf("the manual has no column for %s", client)
				}
				name := fmt.Sprintf("%d-%t/%s", r.status, r.retriable, strings.Fields(client)[0])
				attempt(t, strings.NewReplacer("ORIGIN", origin.URL, "BASE", origin.URL+"/"+name, "NAME", name).Replace(command))
				most := s.most("/" + name + "/")
				if most == 0 {
					t.Errorf("%d: no request came", r.status)
				} else if again := most > 1; again != r.again[client] {
					t.Errorf("%d, retriable %t: the manual says %t, %d requests came", r.status, r.retriable, r.again[client], most)
				}
			}
		})
	}
}

// attempt runs a client, which fails.
func attempt(t *testing.T, command string) {
	t.Helper()
	if out, _ := run(t, command); testing.Verbose() {
		t.Logf("%s\n%.300s", command, out)
	}
}

// run runs a command in an empty home.
func run(t *testing.T, command string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = t.TempDir()
	home := filepath.Join(cmd.Dir, "home")
	must.Do(t, os.Mkdir(home, 0o700))
	rustup := cmp.Or(os.Getenv("RUSTUP_HOME"), filepath.Join(os.Getenv("HOME"), ".rustup"))
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "SDKS=" + os.Getenv("AILERON_TEST_SDKS"),
		"GIT_TERMINAL_PROMPT=0", "RUSTUP_HOME=" + rustup, "no_proxy=127.0.0.1"}
	return cmd.CombinedOutput()
}
