package forge

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
)

const (
	tracker = "github://acme/tracker"
	version = "1.2.0"
)

// at returns a fault of one host.
func at(host string, respond http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Host != host {
			return false
		}
		respond(w, r)
		return true
	}
}

// published returns a stand-in with one version, and a user who wants it.
func published(t *testing.T) (*Forge, *user, []byte) {
	t.Helper()
	f := Start(t)
	archive := packed(t, tracker, version, "x")
	f.Publish(t, tracker, version, asset, archive)
	return f, newUser(t, f), archive
}

// A redirect leaves https for nothing, does not end in a loop, and leads to no address
// that only this machine can reach.
func TestRedirectsThatAreNotFollowed(t *testing.T) {
	t.Parallel()
	inside := Start(t) // what a publisher must not reach: it counts connections
	for name, c := range map[string]struct{ to, class, reason, want string }{
		"to http": {"http://" + GitHubAssets + "/x", "network_error", "redirect_not_allowed", "only https is followed"},
		"to ftp":  {"ftp://" + GitHubAssets + "/x", "network_error", "redirect_not_allowed", "only https is followed"},
		"to itself": {"https://" + GitHub + "/acme/tracker/releases/download/v1.2.0/aileron.tar.gz", "network_error",
			"redirect_not_allowed", "it redirects more than 5 times"},
		"with a password": {"https://user:secret-of-a-publisher@" + GitHubAssets + "/x", "network_error",
			"redirect_not_allowed", "a URL with a user name"},
		"to loopback": {"https://" + inside.Server.Addr + "/x?sig=secret-of-a-publisher", "network_error",
			"redirect_not_allowed", "(loopback)"},
		"to the cloud's host": {"https://169.254.169.254/latest", "network_error", "redirect_not_allowed", "(metadata)"},
		"to a private address": {"https://10.0.0.1/x", "network_error", "redirect_not_allowed",
			"the name leads to no address that may be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, u, _ := published(t)
			f.Faults = at(GitHub, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, c.to, http.StatusFound)
			})
			message := u.fails(c.class, c.reason, "connector", "install", tracker+"@"+version, "--yes")
			if !strings.Contains(message, c.want) || strings.Contains(message, "secret-of-a-publisher") {
				t.Errorf("%s; want %q", message, c.want)
			}
			u.isClean()
			if n := len(f.Server.Seen()); n > 6 { // one, and five redirects
				t.Errorf("it got %d requests", n)
			}
			if n := inside.Server.Connections(); n > 0 {
				t.Errorf("an address inside got %d connections", n)
			}
		})
	}
}

// Statuses that may pass are asked for again, within bounds, and others are not.
func TestStatusesOfASource(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status     int
		retryAfter string
		times      int64 // how often; after that it serves
		requests   int64
		reason     string // "": it is installed
		want       string
	}{
		"one 429":             {429, "1", 1, 2, "", ""},
		"two 503":             {503, "", 2, 3, "", ""},
		"503 for ever":        {503, "0", 99, 3, "source_unavailable", "the status 503"},
		"a wait of an hour":   {429, "3600", 99, 1, "source_unavailable", "try again in 1h0m0s"},
		"a wait with 403":     {403, "3600", 99, 1, "source_unavailable", "accepts no more requests now (status 403)"},
		"a wait that is none": {500, "soon", 99, 3, "source_unavailable", "the status 500"},
		"403":                 {403, "", 99, 1, "source_refused", "the status 403"},
		"204":                 {204, "", 99, 1, "source_refused", "the status 204"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, u, archive := published(t)
			var requests atomic.Int64
			f.Faults = at(GitHubAssets, func(w http.ResponseWriter, _ *http.Request) {
				if requests.Add(1) > c.times {
					_, _ = w.Write(archive)
					return
				}
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.WriteHeader(c.status)
			})
			if c.reason == "" {
				u.ok("connector", "install", tracker+"@"+version, "--yes")
			} else {
				message := u.fails("external_api_error", c.reason, "connector", "install", tracker+"@"+version, "--yes")
				if !strings.Contains(message, c.want) || strings.Contains(message, "signed-for-this-download") {
					t.Errorf("%s; want %q, and not the signature of the URL", message, c.want)
				}
				u.isClean()
			}
			if n := requests.Load(); n != c.requests {
				t.Errorf("it got %d requests, want %d", n, c.requests)
			}
		})
	}
}

// A source that ends early, lies about the length, sends too much or too slowly, or sends
// something else is an error that names that, and nothing of it stays.
func TestTransfersThatFail(t *testing.T) {
	t.Parallel()
	whole := packed(t, tracker, version, "x")
	send := func(w http.ResponseWriter, length int, data []byte) {
		if length >= 0 {
			w.Header().Set("Content-Length", fmt.Sprint(length))
		}
		_, _ = w.Write(data)
		_ = http.NewResponseController(w).Flush()
	}
	for name, c := range map[string]struct {
		respond             func(w http.ResponseWriter, r *http.Request)
		class, reason, want string
	}{
		"torn": {func(w http.ResponseWriter, _ *http.Request) {
			send(w, len(whole), whole[:len(whole)/2])
			panic(http.ErrAbortHandler)
		}, "network_error", "source_truncated", "ended early"},
		"torn without a length": {func(w http.ResponseWriter, _ *http.Request) {
			send(w, -1, whole[:len(whole)/2])
			panic(http.ErrAbortHandler)
		}, "network_error", "source_truncated", "ended early"},
		"a length that is too large": {func(w http.ResponseWriter, _ *http.Request) {
			send(w, len(whole)+10, whole)
		}, "network_error", "source_truncated", "ended early"},
		"a length that is too small": {func(w http.ResponseWriter, _ *http.Request) {
			send(w, len(whole)-10, whole[:len(whole)-10])
		}, "invalid_request", "archive_broken", "it ends early"},
		"a length of a terabyte": {func(w http.ResponseWriter, _ *http.Request) {
			send(w, 1<<40, whole)
		}, "resource_limit_exceeded", "source_too_large", "it has more than"},
		"no end": {func(w http.ResponseWriter, r *http.Request) {
			for block := make([]byte, 1<<20); r.Context().Err() == nil; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, "resource_limit_exceeded", "source_too_large", "it has more than"},
		"no response": {func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}, "timeout", "source_too_slow", "less than 16 KiB arrived within 2s"},
		"a drip": {func(w http.ResponseWriter, r *http.Request) {
			drip := time.NewTicker(10 * time.Millisecond)
			defer drip.Stop()
			for n := 0; n < 6000 && r.Context().Err() == nil; n++ { // a minute, and less than 16 KiB
				send(w, -1, []byte{0x1f})
				<-drip.C
			}
		}, "timeout", "source_too_slow", "less than 16 KiB arrived within 2s"},
		"a login page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			send(w, -1, []byte("<html>sign in</html>"))
		}, "external_api_error", "source_not_an_archive", "a web page, not an archive"},
		"not an archive": {func(w http.ResponseWriter, _ *http.Request) {
			send(w, -1, []byte("hello"))
		}, "invalid_request", "archive_broken", "it is not a gzipped tar"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, u, _ := published(t)
			u.configure(Config() + "idle_timeout = \"5m\"\n") // a busy machine must not be the reason
			if c.reason == "source_too_slow" {
				u.configure(Config() + "idle_timeout = \"2s\"\n")
			}
			f.Faults = at(GitHubAssets, c.respond)
			message := u.fails(c.class, c.reason, "connector", "install", tracker+"@"+version, "--yes")
			if !strings.Contains(message, c.want) {
				t.Errorf("%s; want %q", message, c.want)
			}
			u.isClean()
		})
	}
}

// Who cannot prove to be the forge is not asked for anything.
func TestASourceThatIsNotTrusted(t *testing.T) {
	t.Parallel()
	f, u, _ := published(t)
	_, errs, code := u.start("connector", "install", tracker+"@"+version, "--yes", "--resolve",
		GitHub+":443:"+f.Server.Addr)
	if code != 1 || !strings.Contains(errs, "its certificate is not trusted") || !strings.Contains(errs, "--upstream-ca") {
		t.Errorf("it ends with %d: %s", code, errs)
	}
	if n := len(f.Server.Seen()); n > 0 {
		t.Errorf("it got %d requests", n)
	}
	u.configure("[sources]\ngithub = \"http://github.com\"\n")
	_, errs, code = u.run("connector", "install", tracker+"@"+version, "--yes")
	if code != 1 || !strings.Contains(errs, `"http://github.com" is not https://HOST`) {
		t.Errorf("a base URL of http ends with %d: %s", code, errs)
	}
	u.isEmpty()
}

// isEmpty fails the test if something was installed. There need not be a store.
func (u *user) isEmpty() {
	u.t.Helper()
	entries, err := os.ReadDir(u.home + "/store/connectors/sha256")
	if err == nil && len(entries) > 0 {
		u.t.Errorf("the store has %v", entries)
	}
}

// Ctrl-C ends a download, and leaves nothing.
func TestADownloadCanBeInterrupted(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"connector install", "action add"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			interrupt(t, append(strings.Fields(command), tracker+"@"+version, "--yes"))
		})
	}
}

// interrupt interrupts a command that fetches a version, as soon as a part of it came.
func interrupt(t *testing.T, args []string) {
	t.Helper()
	f, u, archive := published(t)
	f.Publish(t, tracker, version, "action.md", archive)
	begun := make(chan struct{})
	f.Faults = at(GitHubAssets, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(archive[:1])
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append(args, f.Flags()...)...)
	var errs bytes.Buffer
	cmd.Env, cmd.Stderr = harness.Env(u.home, ""), &errs
	must.Do(t, cmd.Start())
	select {
	case <-begun:
	case <-ctx.Done():
		t.Fatalf("the download has not begun: %s", errs.String())
	}
	must.Do(t, cmd.Process.Signal(syscall.SIGINT))
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(errs.String(), "aileron: interrupted") {
		t.Errorf("it ends with %d: %s", code, errs.String())
	}
	u.isClean()
}
