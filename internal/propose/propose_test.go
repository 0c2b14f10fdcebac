package propose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/store"
)

// recorded returns a home whose log has the rows in one session.
func recorded(t testing.TB, rows ...audit.Row) (d *home.Dir, session string) {
	t.Helper()
	d = &home.Dir{Flag: t.TempDir()}
	session = audit.NewID()
	l := must.Get(audit.Open(filepath.Join(d.Flag, "audit.db"), audit.Options{Session: session}))(t)
	start := audit.Row{Event: audit.EventSessionStarted, SessionID: session, Source: audit.SourceLauncher}
	must.Get(l.Append(t.Context(), start))(t)
	for _, r := range rows {
		r.SessionID, r.Source = session, audit.SourceConnectTLS
		must.Do(t, l.AppendSoon(t.Context(), r))
	}
	must.Do(t, l.Close())
	return d, session
}

// passed returns the row of a request that a learning session let pass, "METHOD host/path".
func passed(request string) audit.Row {
	method, at, _ := strings.Cut(request, " ")
	host, path, _ := strings.Cut(at, "/")
	return audit.Row{Event: audit.EventSandboxPassthrough, Decision: audit.DecisionPassthrough, Method: method,
		Scheme: "https", Host: host, Port: 443, Path: "/" + path, Status: 200}
}

func refused(request, reason string) audit.Row {
	r := passed(request)
	r.Event, r.Decision, r.Reason = audit.EventSandboxRejected, audit.DecisionRejected, reason
	return r
}

// lines returns the operations of a proposal.
func lines(p *Proposal) (all []string) {
	for _, op := range p.Operations {
		all = append(all, fmt.Sprintf("%s %s%s %s %d/%d", op.Method, op.Host, op.Path, op.Approval, op.Refused, op.Requests))
	}
	return all
}

// Only what policy decided counts, and a request to a host that an installed connector names is left to it.
func TestAProposalIsOfWhatPolicyDecided(t *testing.T) {
	refusedByServer := refused("GET api.example/v1/down", "upstream_unreachable")
	intent := passed("GET api.example/v1/intent")
	intent.Event, intent.Decision = audit.EventProxyStarted, ""
	d, session := recorded(t, passed("GET api.example/v1/items/7"),
		refused("GET api.example/v1/items/8", "host_not_allowed"),
		passed("DELETE api.example/v1/items/8"), refusedByServer,
		intent, passed("GET registry.npmjs.org/left"),
		refused("PUT registry.npmjs.org/left", "operation_not_matched"), passed("GET 10.0.0.1/v1"),
		passed("GET api.example/a//b"))
	npm, _ := catalog.Find("npm")
	s := must.Get(d.OpenStore())(t)
	must.Get(s.InstallAll(t.Context(), []store.Source{{Src: "npm", Files: npm.Files}}, nil))(t)
	p := must.Get(FromSessions(t.Context(), d, []string{session}))(t)
	want := "[DELETE api.example/v1/items/{item} required 0/1 GET api.example/v1/items/{item} none 1/2]"
	if got := fmt.Sprint(lines(p)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if p.Covered != 1 || p.LeftOut != 2 || len(p.Others) != 1 || !p.Others[0].Installed || p.Others[0].Requests != 1 {
		t.Errorf("covered %d, left out %d, others %+v", p.Covered, p.LeftOut, p.Others)
	}
}

// A sandbox sends what it wants: a proposal of noise is one that a person can read, and that a store takes.
func TestAProposalOfNoiseIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var rows []audit.Row
	const secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
	for range 5000 {
		path := ""
		for range 1 + r.IntN(4) {
			path += "/" + []string{secret, fmt.Sprintf("w%c%c", 'a'+r.IntN(26), 'a'+r.IntN(26)), fmt.Sprint(r.IntN(9)),
				"{x}", "%2e", "é", strings.Repeat("a", 300), "'; rm -rf"}[r.IntN(8)]
		}
		method := []string{"GET", "POST", "BREW"}[r.IntN(3)]
		rows = append(rows, passed(fmt.Sprintf("%s h%d.example%s", method, r.IntN(400), path)))
	}
	d, session := recorded(t, rows...)
	p := must.Get(FromSessions(t.Context(), d, []string{session}))(t)
	p.Compare()
	dir := filepath.Join(t.TempDir(), "learnt")
	must.Do(t, p.Write(dir))
	c := must.Get(store.Read(dir))(t)
	must.Get(spec.NewIndex([]*spec.Connector{c}))(t)
	var text bytes.Buffer
	must.Do(t, p.Print(&text, 0))
	text.Write(must.Get(json.Marshal(p))(t))
	_, declared := c.Documents()
	text.Write(declared)
	if len(p.Operations) > maxOperations || p.LeftOut == 0 || text.Len() > 1<<20 {
		t.Errorf("%d operations, %d left out, %d bytes", len(p.Operations), p.LeftOut, text.Len())
	}
	if strings.Contains(text.String(), secret[4:]) {
		t.Error("a secret of a path is in the proposal")
	}
	again := must.Get(FromSessions(t.Context(), d, []string{session, session[:20]}))(t)
	again.Compare()
	if !bytes.Equal(must.Get(json.Marshal(p))(t), must.Get(json.Marshal(again))(t)) {
		t.Error("the same session is another proposal")
	}
}

// Who may read every path of a host is asked, but for an archive in plain HTTP, and the report says that it is so.
func TestEveryPathIsAskedAbout(t *testing.T) {
	archive := passed("GET deb.example/tool_1.0%7erc1.deb")
	archive.Scheme, archive.Port = "http", 80
	d, session := recorded(t, passed("GET api.example/%7e"), archive, passed("GET b.example/repos/a"),
		refused("GET b.example/%7e", "host_not_allowed"))
	p := must.Get(FromSessions(t.Context(), d, []string{session}))(t)
	want := "[GET api.example required 0/1 GET b.example/repos/a none 0/1 GET deb.example:80 none 0/1]"
	if got := fmt.Sprint(lines(p)); got != want || p.LeftOut != 1 {
		t.Errorf("got  %s, %d left out\nwant %s", got, p.LeftOut, want)
	}
	var text bytes.Buffer
	must.Do(t, p.Print(&text, 0))
	if n := strings.Count(text.String(), "EVERY PATH of "); n != 2 {
		t.Errorf("every path passes at 2 hosts, and the report has %d:\n%s", n, &text)
	}
}

// What a sandbox left where the proposal is to be written is an error, and nothing is written beside it.
func TestAPlantedReportOrLinkIsAnError(t *testing.T) {
	d, session := recorded(t, passed("GET api.example/v1/items/7"))
	p := must.Get(FromSessions(t.Context(), d, []string{session}))(t)
	forged, target := t.TempDir(), t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(forged, reportFile), []byte("all is well"), 0o600))
	link := filepath.Join(t.TempDir(), "learnt")
	must.Do(t, os.Symlink(target, link))
	for dir, why := range map[string]string{forged: "it exists already", link + "/": "is a link"} {
		if err := p.Write(dir); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("the error of %s is %v, want %s", dir, err, why)
		}
	}
	if files := must.Get(os.ReadDir(target))(t); len(files) != 0 {
		t.Errorf("%v is written behind the link", files)
	}
	if files := must.Get(os.ReadDir(forged))(t); len(files) != 1 {
		t.Errorf("%v is beside the forged report", files)
	}
}

// BenchmarkLearn proposes a connector for 100 000 requests as clients send them.
func BenchmarkLearn(b *testing.B) {
	forms := []string{"GET registry.npmjs.org/package-%d",
		"GET registry.npmjs.org/package-%[1]d/-/package-%[1]d-1.2.3.tgz",
		"GET api.github.com/repos/acme/widget/issues/%d", "POST api.github.com/repos/acme/widget/issues/%d/comments",
		"GET proxy.golang.org/github.com/acme/tool/@v/v1.0.%d.zip",
		"GET deb.debian.org/debian/pool/main/c/curl/curl_%d.1_amd64.deb",
		"GET cluster.example/api/v1/namespaces/default/pods/web-6d4cf56db6-x%dx7k",
		"POST slack.com/api/chat.postMessage"}
	rows := make([]audit.Row, 100_000)
	for i := range rows {
		request := forms[i%len(forms)]
		if strings.Contains(request, "%") {
			request = fmt.Sprintf(request, i%2000)
		}
		rows[i] = passed(request)
	}
	d, session := recorded(b, rows...)
	for b.Loop() {
		p, err := FromSessions(b.Context(), d, []string{session})
		if err != nil || len(p.Operations) == 0 {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(p.Operations)), "operations")
	}
}
