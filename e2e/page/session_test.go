package page

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/e2e/stub"
)

const (
	pageSecret     = "page-stand/in+TOKEN-0123456789"
	pagePassphrase = "correct horse battery"
	issues         = "api.tracker.example"
)

// tracker writes a connector that asks before it closes an issue, and shows the issue with the question.
func tracker(t *testing.T) harness.Connector {
	t.Helper()
	dir := t.TempDir()
	write := func(file, text string) { must.Do(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600)) }
	write("manifest.toml", "[connector]\nname = \"github://acme/tracker\"\nversion = \"1.0.0\"\n"+
		"[capabilities.network]\nhosts = [\""+issues+":443\"]\n[capabilities.credential]\nkind = \"bearer\"\n"+
		"[provides]\nintents = [\"close\"]\n")
	write("aileron.connector.v1.json", `{"schema_version":"aileron.connector.v1",
		"connector":{"fqn":"github://acme/tracker","version":"1.0.0"},"tools":[{"name":"tracker","operations":[
		{"name":"close","method":"POST","path":"/issues/{id}/close","hosts":["`+issues+`"],"credential":"bearer",
		 "approval":"required","preview":{"operation":"get","args":{"id":"${path.id}"},"render":["title","by"]}},
		{"name":"get","method":"GET","path":"/issues/{id}","hosts":["`+issues+`"],"credential":"bearer",
		 "idempotency":"idempotent"}]}]}`)
	return harness.Connector{Dir: dir, FQN: "github://acme/tracker", Secret: pageSecret}
}

// What waits in a session of the program is decided with the keyboard alone, and the session does that.
func TestRequestsOfASessionAreDecidedByKeyboard(t *testing.T) {
	findBrowser(t)
	service := http.NewServeMux()
	service.HandleFunc("GET /issues/{id}", func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"title":"The build of %s is red\nstate: approved","by":"octo %s"}`, r.PathValue("id"),
			strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	})
	service.HandleFunc("POST /issues/{id}/close", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "closed "+r.PathValue("id"))
	})
	origin := stub.Start(t, stub.Script{Services: map[string]http.Handler{issues: service}})
	dir := must.ShortDir(t)
	program, home := filepath.Join(dir, "aileron"), filepath.Join(dir, "h")
	must.Do(t, harness.Build(dir, map[string]string{"aileron": "../../cmd/aileron"}))
	must.Do(t, harness.Bind(program, home, pagePassphrase, tracker(t)))
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Env, cmd.Stderr = harness.Env(home, pagePassphrase), &bytes.Buffer{}
		return cmd
	}
	session := command("proxy", "--json", "--upstream-ca", origin.Roots, "--resolve", issues+":443:"+origin.Addr)
	ready := must.Get(harness.StartProxy(session))(t)
	defer func() { must.Do(t, harness.EndProxy(session)) }()
	page := command("audit", "serve", "--decide")
	out := must.Get(page.StdoutPipe())(t)
	must.Do(t, page.Start())
	defer func() { _ = page.Process.Signal(os.Interrupt); _ = page.Wait() }()
	link, err := bufio.NewReader(out).ReadString('\n')
	must.Do(t, err)

	proxy, roots := must.Get(ready.Proxy())(t), must.Get(ready.Roots())(t)
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy),
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	send := func(id string) chan string {
		got := make(chan string, 1)
		go func() {
			res, err := client.Post("https://"+issues+"/issues/"+id+"/close", "text/plain", strings.NewReader("why "+id))
			if err != nil {
				got <- err.Error()
				return
			}
			defer res.Body.Close()
			text, _ := io.ReadAll(res.Body)
			got <- fmt.Sprintf("%d %s", res.StatusCode, text)
		}()
		return got
	}
	b := newBrowser(t)
	b.open(strings.TrimSpace(link[strings.Index(link, "http"):]))
	first := send("7")
	b.until(`document.querySelector("#asking").innerText.includes("1 request waits for your approval")`)
	b.openQuestion("")
	b.until(`document.querySelector("#question pre.service")`)
	said := eval[string](b, `[...document.querySelectorAll("#question pre.service")].map((e) => e.textContent).join("\n")`)
	if said != "title: The build of 7 is red\n  state: approved\nby: octo "+strings.Repeat("*", len(pageSecret)) {
		t.Errorf("the service says %q", said)
	}
	listed := command("approval", "list")
	listed.Stderr = nil
	if out := string(must.Get(listed.Output())(t)); !strings.Contains(out, "/issues/7/close  > title: The build of 7") ||
		strings.Contains(out, pageSecret[:8]) {
		t.Errorf("it is listed as %s", out)
	}
	rest := eval[string](b,
		`[...document.querySelectorAll("#question pre:not(.service)")].map((e) => e.textContent).join("\n")`)
	if strings.Contains(rest, "approved") || !strings.Contains(rest, "why 7") {
		t.Errorf("the other pieces are %q", rest)
	}
	b.shoot("session")
	b.press("a")
	b.until(`document.querySelector("#decide").open && document.activeElement.value === "once"`)
	b.write("\r")
	if got := <-first; got != "200 closed 7" {
		t.Errorf("what was approved got %q", got)
	}
	b.until(`document.querySelector("#record").innerText.includes("approved")`)
	second := send("8")
	b.press("\x1b")
	// The list that is shown may be the one of before, in which the first one is pending.
	b.until(`[...document.querySelectorAll("#asks tr.pending")].some((r) => r.innerText.includes("/issues/8/")) &&
		document.activeElement.closest("#asks tr")`)
	b.press("jjj\r")
	b.until(`document.querySelector("#question").innerText.includes("why 8")`)
	b.press("n")
	b.until(`document.querySelector("#decide").open`)
	b.write("\r")
	if got := <-second; !strings.HasPrefix(got, "403 ") || !strings.Contains(got, `"class":"approval_denied"`) {
		t.Errorf("what was denied got %q", got)
	}
	list := command("audit", "list", "--json", "--limit", "0")
	list.Stderr = nil
	var decided []string
	for line := range strings.Lines(string(must.Get(list.Output())(t))) {
		var row struct {
			Event  string
			Fields map[string]any
		}
		must.Do(t, json.Unmarshal([]byte(line), &row))
		if surface, ok := row.Fields["surface"]; ok {
			decided = append(decided, fmt.Sprint(row.Event, " ", surface, " ", row.Fields["preview_sha256"] != nil))
		}
		if strings.Contains(line, "The build") {
			t.Errorf("a row has what the service says: %s", line)
		}
	}
	if got := strings.Join(decided, ", "); got != "approval.approved page true, approval.denied page true" {
		t.Errorf("the rows of decisions are %s", got)
	}
}
