package attacks

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	slashes "path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/harness"
)

// testCase is one case, or one of its variants, under way. What it finds is
// collected rather than reported, so that the harness itself can be tried.
type testCase struct {
	t     testing.TB // for what is the harness's own fault
	s     *subject
	name  string
	after int64 // the last audit row before it

	rows    int                    // outcome rows that there must be; -1: any number
	broken  int                    // events that report a broken audit log
	permits func(hit) bool         // what may reach an origin beside the fixture's operations
	reaches func(dial) bool        // what may be dialled beside the fixture's origins
	strays  bool                   // an origin may get bytes that are no request
	bulk    bool                   // so much is received that it is searched as it is only
	anew    bool                   // the upstream connection of its first request may not be used again
	unfit   bool                   // there is no control request after it
	also    func(name string) bool // names that may be resolved beside the fixture's
	vary    func(string, func(*testCase))

	mu    sync.Mutex
	fails []string
	lines []*line
	read  []*line // what was decoded besides
	used  []hit   // what reached the origins, once it is judged
}

// failf notes that the subject did not hold.
func (c *testCase) failf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.fails) < 10 { // more of them add nothing
		c.fails = append(c.fails, fmt.Sprintf(format, args...))
	}
}

// failed reports a case in which the subject did not hold.
func (c *testCase) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.fails) > 0
}

// must ends the test on a fault of the harness's own.
func (c *testCase) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%s: the harness failed: %v", c.name, err)
	}
}

// try runs one case against s with all oracles, and returns its failures.
// variant runs its variants as trials of their own.
func try(t testing.TB, s *subject, name string, run func(*testCase), variant func(string, func(*testCase))) []string {
	t.Helper()
	c := &testCase{t: t, s: s, name: name, after: s.last(), vary: variant}
	for _, o := range on.origins {
		o.reset()
	}
	on.names.take()
	on.dials.take()
	limited(t, name, func() {
		run(c)
		if len(c.lines)+len(c.read) == 0 { // its variants did everything
			return
		}
		c.judge()
		c.control()
	})
	return c.fails
}

// each runs a variant of the case, by itself, with all oracles.
func (c *testCase) each(name string, run func(*testCase)) {
	c.vary(name, run)
	c.after = c.s.last()
}

// as runs ask against another session, whose requests and rows are not judged with those of the case.
func (c *testCase) as(other *world, ask func()) {
	mine := c.s
	c.s, c.reaches = &other.subject, func(d dial) bool { return d.to.String() == other.addr }
	ask()
	c.s, c.rows = mine, -1
	for _, o := range on.origins {
		o.forget()
	}
}

// hits are the requests that reached a host's origins so far.
func (c *testCase) hits(host string) []hit {
	var all []hit
	for _, o := range on.origins {
		if o.host == host {
			all = append(all, o.seen()...)
		}
	}
	return all
}

// untouched fails the case when any request reached any origin.
func (c *testCase) untouched() {
	for _, o := range on.origins {
		for _, h := range o.seen() {
			c.failf("%s got %s %s", o.name, h.Method, h.Target)
		}
	}
}

// judge asks the universal oracles.
func (c *testCase) judge() {
	for _, l := range c.lines {
		_ = l.Close()
	}
	rows := c.settledRows()
	on.settle(c.s.patience)
	var hits []hit
	for _, o := range on.origins {
		seen, strays := o.reset()
		hits = append(hits, seen...)
		if len(strays) > 0 && !c.strays {
			c.failf("O2: %s got bytes that are no request: %.80q", o.name, strays[0])
		}
	}
	on.names.answers(nil)
	c.used = hits
	c.judgeLeaks(rows)
	c.judgeReach()
	c.judgeHits(hits, rows)
	c.judgeRows(rows)
}

// settledRows waits until every exchange has its outcome. It leaves out the log's signed heads, which belong to no
// request.
func (c *testCase) settledRows() []audit.Row {
	wait := c.s.patience
	switch {
	case c.s.forgets:
		wait = 300 * time.Millisecond
	case c.failed():
		wait = min(wait, 3*time.Second) // what did not hold may never come
	}
	var rows []audit.Row
	harness.Poll(wait, 2*time.Millisecond, func() bool {
		rows = slices.DeleteFunc(c.s.rows(c.after), func(r audit.Row) bool { return r.Event == audit.EventCheckpoint })
		started, ended := map[any]bool{}, 0
		for _, r := range rows {
			if r.Event == audit.EventProxyStarted {
				started[r.Fields["request_id"]] = true
			}
		}
		for _, r := range rows {
			if r.Event != audit.EventProxyStarted {
				ended++
				delete(started, r.Fields["request_id"])
			}
		}
		return len(started) == 0 && ended >= c.rows
	})
	return rows
}

// judgeLeaks is O1: nothing that the box received holds a form of a secret,
// and no row does.
func (c *testCase) judgeLeaks(rows []audit.Row) {
	for _, l := range append(c.lines, c.read...) {
		search := on.leaks.Find
		if c.bulk {
			search = on.leaks.Scan
		}
		if of := search(l.received()); of != "" {
			c.failf("O1: the box received %s", of)
		}
	}
	text, err := json.Marshal(rows)
	c.must(err)
	if of := on.leaks.Find(text); of != "" {
		c.failf("O1: an audit row holds %s", of)
	}
}

// judgeReach is half of O2: no name was resolved and no address dialled but
// those of the fixture's declared origins.
func (c *testCase) judgeReach() {
	for _, name := range on.names.take() {
		if !declared(name) && (c.also == nil || !c.also(name)) {
			c.failf("O2: the name %q was asked for", name)
		}
	}
	at := map[netip.Addr]string{}
	for host, a := range places {
		at[a] = host
	}
	for _, d := range on.dials.take() {
		host := at[d.to.Addr()]
		switch {
		case d.to.String() == c.s.addr: // the client itself
		case host == "dns" || at[d.from.Addr()] == "dns":
		case d.network == "tcp" && declared(host) && slices.Contains(ports[host], d.to.Port()):
		case c.reaches != nil && c.reaches(d):
		default:
			c.failf("O2: %s was dialled (%s)", d, host)
		}
	}
}

// declared reports a host that some operation of the fixture names.
func declared(host string) bool {
	for _, h := range []string{"api", "key", "q", "basic", "oauth", "plain", "alt"} {
		if host == h+".good.test" {
			return true
		}
	}
	return false
}

// permitted is what may reach the origins: the fixture's operations, written
// down a second time.
func permitted(h hit) bool {
	raw, query, _ := strings.Cut(h.Target, "?")
	path, err := url.PathUnescape(raw)
	if err != nil || strings.ContainsAny(path, "\\;\x00\r\n") || strings.TrimSuffix(slashes.Clean(path), "/") != path {
		return false
	}
	only := func(names ...string) bool {
		for pair := range strings.SplitSeq(query, "&") {
			name, _, _ := strings.Cut(pair, "=")
			if name, err := url.QueryUnescape(name); err != nil || name != "" && !slices.Contains(names, name) {
				return false
			}
		}
		return true
	}
	id, isItem := strings.CutPrefix(path, "/v1/items/")
	isItem = isItem && id != "" && !strings.Contains(id, "/")
	switch h.origin {
	case "api.good.test:443":
		switch {
		case path == "/v1/items":
			return h.Method == "GET" && only("q", "limit") || h.Method == "POST"
		case path == "/v1/echo":
			return h.Method == "GET" || h.Method == "POST"
		case path == "/v1/live":
			return h.Method == "GET"
		}
		return isItem && (h.Method == "GET" || h.Method == "DELETE")
	case "q.good.test:443":
		return h.Method == "GET" && path == "/v1/items" && only("x", "api_key")
	case "key.good.test:443", "basic.good.test:443", "oauth.good.test:443",
		"plain.good.test:443", "plain.good.test:80", "alt.good.test:8443":
		return h.Method == "GET" && path == "/v1/items"
	}
	return false
}

// holders are the origins that may see a secret.
var holders = map[string]string{"S1": "api.good.test:443", "S2": "key.good.test:443", "S3": "q.good.test:443",
	"S4":  "basic.good.test:443",
	"S5a": "oauth.good.test:443", "S6": "alt.good.test:8443"}

// judgeHits is the other half of O2: what reached an origin was allowed, is
// what the audit row records, and carried its own credential once.
func (c *testCase) judgeHits(hits []hit, rows []audit.Row) {
	type key struct{ method, host, path string }
	intended := map[key]int{}
	for _, r := range rows {
		if r.Event == audit.EventProxyStarted || r.Decision == audit.DecisionPassthrough {
			intended[key{r.Method, fmt.Sprintf("%s:%d", r.Host, r.Port), r.Path}]++
		}
	}
	for _, h := range hits {
		path, _, _ := strings.Cut(h.Target, "?")
		if !permitted(h) && (c.permits == nil || !c.permits(h)) {
			c.failf("O2: %s got %s %s", h.origin, h.Method, h.Target)
		}
		if host, port, _ := strings.Cut(h.origin, ":"); h.Host != host && h.Host != h.origin || port != "80" &&
			h.sni != host {
			c.failf("O2: %s was asked for Host %q with SNI %q", h.origin, h.Host, h.sni)
		}
		k := key{h.Method, h.origin, path}
		if intended[k]--; intended[k] < 0 {
			c.failf("O2: no row says that %s %s would be sent to %s", h.Method, path, h.origin)
		}
		c.judgeCredential(h)
	}
}

// judgeCredential: an origin sees its own secret at most once, in one place,
// and no other.
func (c *testCase) judgeCredential(h hit) {
	for name, s := range on.secrets {
		spelled := []string{s, url.QueryEscape(s), basicAuth("user", s)}
		n := 0
		for _, form := range slices.Compact(spelled) {
			n += bytes.Count(h.Raw, []byte(form))
		}
		if n > 0 && holders[name] != h.origin {
			c.failf("O2: %s got %s", h.origin, name)
		}
		if n > 1 {
			c.failf("O2: %s got %s %d times in one request", h.origin, name, n)
		}
		if n == 0 && holders[name] == h.origin {
			c.failf("O2: %s was asked without %s", h.origin, name)
		}
	}
}

// judgeRows is O3: as many outcomes as requests, each tied to one request.
func (c *testCase) judgeRows(rows []audit.Row) {
	started, ended := map[any]int{}, map[any]int{}
	outcomes, broken := 0, 0
	for _, r := range rows {
		id := r.Fields["request_id"]
		if r.Event == audit.EventBroken {
			broken++
			continue
		}
		if r.Event == audit.EventProxyStarted {
			started[id]++
			continue
		}
		outcomes++
		ended[id]++
		if r.Decision == "" || r.Decision == audit.DecisionRejected && r.Reason == "" {
			c.failf("O3: a row without decision or reason: %+v", r)
		}
		if strings.ContainsAny(r.Path, "?#\r\n\x00") || len(r.Path) > 4096 {
			c.failf("O3: a row's path is %.100q", r.Path)
		}
	}
	for id, n := range started {
		if n != 1 || ended[id] != 1 {
			c.failf("O3: a request has %d intents and %d outcomes", n, ended[id])
		}
	}
	for id, n := range ended {
		if n != 1 {
			c.failf("O3: the request %v has %d outcomes", id, n)
		}
	}
	if broken != c.broken {
		c.failf("O3: %d rows report a broken log, want %d", broken, c.broken)
	}
	if c.rows >= 0 && outcomes != c.rows {
		var said []string
		for _, r := range rows {
			said = append(said, fmt.Sprintf("%s %s %s %s", r.Event, r.Method, r.Path, r.Reason))
		}
		c.failf("O3: %d outcome rows, want %d: %s", outcomes, c.rows, strings.Join(said, "; "))
	}
}

// control is O5's first half: after an attack the session still serves.
func (c *testCase) control() {
	if c.unfit || c.s.plane != nil && c.s.plane.crippled {
		return
	}
	c.after, c.rows = c.s.last(), 0
	defer c.settledRows() // its rows are not the next case's
	before := len(c.lines)
	a := answer{}
	for try := 0; try < 2 && a.status == 0; try++ {
		a = c.kept()
	}
	if strings.Contains(c.name, "/") { // a variant: the kept tunnel is enough
		c.lines = c.lines[:before]
	} else {
		c.s.release()
	}
	if a.status != 200 {
		c.failf("O5: the control request after it got %d %s", a.status, a.reason)
	}
	hits := slices.DeleteFunc(on.origins["api.good.test:443"].seen(),
		func(h hit) bool { return h.Header.Get("X-Control") == "" })
	if len(hits) != 1 { // what the case has on its way still is not counted
		c.failf("O5: the control request was %d requests to the origin", len(hits))
		return
	}
	for _, h := range c.used {
		if c.anew && h.origin == hits[0].origin {
			if h.conn == hits[0].conn {
				c.failf("O5: an upstream connection is used again after what happened on it")
			}
			break // what came later in the case may stay
		}
	}
}

// kept asks the control request on the subject's own tunnel, which it opens
// where there is none. No status means that the tunnel was ended meanwhile.
func (c *testCase) kept() answer {
	if c.s.tunnel == nil {
		if c.s.tunnel = c.tunnel("api.good.test"); c.s.tunnel == nil {
			return answer{}
		}
	}
	l := c.s.tunnel
	_ = l.SetDeadline(time.Now().Add(c.s.patience))
	_, _ = io.WriteString(l, head("GET", "api.good.test", "/v1/items", "X-Control: yes"))
	a := readAnswer(bufio.NewReader(l), "GET")
	if of := on.leaks.Find(l.received()); of != "" {
		c.failf("O1: the control request's answer holds %s", of)
	}
	l.forget()
	if a.status == 0 || a.last {
		c.s.release()
	}
	return a
}

// searchFiles is O4: nothing that the subject wrote holds a secret.
func searchFiles(t *testing.T, s *subject) {
	t.Helper()
	if of := on.leaks.Find(s.logs()); of != "" {
		t.Errorf("O4: the log holds %s", of)
	}
	for _, root := range s.files() {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if of := on.leaks.Scan(data); of != "" {
				t.Errorf("O4: %s holds %s", filepath.Base(path), of)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// origin is the first origin of a host.
func (c *testCase) origin(host string) *origin { return on.origins[nameOf(host, ports[host][0])] }
