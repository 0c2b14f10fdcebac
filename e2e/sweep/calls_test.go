package sweep

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ALRubinger/aileron/e2e/harness"
)

// calls asks the API to run operations, in each form of a response and with canaries in all parts. The client may have
// the texts, and no secret.
func (s *session) calls() {
	c := s.p.canary
	token, _ := s.proxy.User.Password()
	client := &http.Client{Timeout: harness.Patience}
	defer client.CloseIdleConnections()
	named := func(operation, more string) string {
		return fmt.Sprintf(`{"connector_fqn":%q,"tool":"bearer-tool","operation":%q,%s}`, fqn("bearer"), operation, more)
	}
	carried := func(method, path, more string) string {
		return fmt.Sprintf(`"method":%q,"upstream_url":"https://bearer.sweep.test%s?q=%s","headers":{"X-Sweep":%q,`+
			`"Cookie":%q,"X-Dropped":%q,"Authorization":%q}%s`, method, path, c.text("a query"), c.text("a request field"),
			c.text("a request cookie"), c.text("a request field"), c.text("a request field"), more)
	}
	body := `,"body_base64":"` + base64.StdEncoding.EncodeToString([]byte(c.text("a request body"))) + `"`
	const run, requests, shim = "/connector-operations/run", "/sandbox-proxy/requests", "application/vnd.aileron.shim.v1"
	const help = "/connector-operations/help"
	search := fmt.Sprintf(`{"connector_fqn":%q,"tool":"bearer-tool","command":"bearer-tool","words":["%s"]}`,
		fqn("bearer"), strings.ReplaceAll(c.text("a query"), " ", ""))
	for _, call := range []struct{ path, accept, body, want string }{
		{run, "*/*", named("forms", `"args":{}`), `{"status":"proxied",`},
		{run, shim, named("forms", `"args":{}`), "0 200 "},
		{run, shim + "+json", named("forms", `"args":{}`), "0 200 "},
		{run, shim, named("packed", `"args":{}`), "1 406 "},
		{run, shim, named("cut", `"args":{}`), ""},
		{run, shim, named("forms", `"args":{"`+c.text("a request body")+`":"`+c.text("a request body")+`"}`), "2 400 "},
		{run, "*/*", named("forms", `"args":{"q":"`+c.text("a request body")+`"`), `{"error":`},
		{run, "*/*", named(c.text("a request body"), `"args":{}`), `{"error":`},
		{help, "*/*", search, "No operation of bearer-tool has all of the words"},
		{help, shim, search, "0 200 - response\nNo operation of "},
		{help, shim, strings.Replace(search, `"tool":"bearer-tool"`, `"tool":"`+c.text("a request body")+`"`, 1), "1 403 "},
		{requests, "*/*", named("echo", carried("POST", "/v1/echo/7", body)), `{"status":"proxied",`},
		{requests, "*/*", named("forms", carried("GET", "/v1/forms", "")), `{"status":"proxied",`},
		{requests, "*/*", named("forms", carried("GET", "/v1/forms", body)), `{"error":`},
		{requests, "*/*", named("strict", carried("GET", "/v1/strict", "")), `{"error":`},
		{requests, "*/*", named("echo", carried("POST", "/v1/echo/7/8", body)), `{"error":`},
	} {
		s.answered(client, token, call.path, call.accept, call.body, call.want)
	}
}

// answered sends a call, and judges the response, which begins with want.
func (s *session) answered(client *http.Client, token, path, accept, body, want string) {
	s.p.t.Helper()
	req, err := http.NewRequestWithContext(s.p.t.Context(), http.MethodPost, s.APIURL+path, strings.NewReader(body))
	if err != nil {
		s.p.t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + token}, "Accept": {accept},
		"Content-Type": {"application/json"}}
	res, err := client.Do(req)
	if err != nil {
		s.p.t.Errorf("%s %s: %v", path, body, err)
		return
	}
	got, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if !strings.HasPrefix(string(got), want) || want != "" && err != nil {
		s.p.t.Errorf("%s %s: %.300q, %v; want %q", path, body, got, err, want)
	}
	fields := fmt.Sprint(res.Header, res.Trailer)
	s.p.canary.judge(s.p.t, "the response to a call at "+path, append(got, fields...), kinds{tokens: true})
}
