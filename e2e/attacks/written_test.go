package attacks

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/proxy/front"
)

// written returns the cases of a file of testdata/cases, whose README.md has their format.
func written(name string) []attack {
	text, err := os.ReadFile(filepath.Join("testdata", "cases", name+".txt"))
	if err != nil {
		panic(err)
	}
	var all []attack
	variants := map[string][]*variant{}
	var (
		common map[string][]string // the case's settings so far
		since  map[string]bool     // those of them that were set since the last variant
		of     []*variant          // the line's, one for each value of "each"
	)
	for n, line := range strings.Split(string(text), "\n") {
		words := strings.TrimSpace(line)
		key, value, _ := strings.Cut(words, " ")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		switch {
		case words == "" || strings.HasPrefix(words, "#"):
		case indent == 0:
			if len(all) == 0 || all[len(all)-1].id != key { // else a case has several parts
				all = append(all, attack{id: key, does: value})
			}
			common, since, of = map[string][]string{}, map[string]bool{}, nil
		case indent == 2 && slices.Contains(verbs, key):
			of = spread(&variant{name: fmt.Sprintf("line %d: %.60s", n+1, words), set: common,
				asks: [][2]string{{key, value}}}, common["each"])
			id := all[len(all)-1].id
			variants[id], since = append(variants[id], of...), map[string]bool{}
		case indent == 2:
			common = maps.Clone(common)
			if !since[key] {
				common[key] = nil
			}
			common[key] = append(slices.Clone(common[key]), value)
			since[key] = true
		default:
			for _, v := range of {
				v.add(key, value)
			}
		}
	}
	for i, a := range all {
		all[i].f = variants[a.id][0].fixture()
		all[i].run = func(c *testCase) {
			for _, v := range variants[a.id] {
				c.each(v.name, v.run)
			}
		}
	}
	return all
}

// verbs begin a request.
var verbs = []string{"get", "post", "ask", "send", "connect", "h2", "call", "run", "act", "carry"}

// variant is one of a case that is written down: its requests, and what else is set.
type variant struct {
	name string
	asks [][2]string // verb and what follows it
	set  map[string][]string
	own  map[string]bool // what of set is the variant's own
	with [][2]string     // for what stands in braces
}

// spread makes a variant of each value that each lists behind a name: all combinations where there are several.
func spread(v *variant, each []string) []*variant {
	if len(each) == 0 {
		return []*variant{v}
	}
	names := strings.Fields(each[0])
	if len(names) == 0 { // it takes back what was set
		return spread(v, each[1:])
	}
	var all []*variant
	for _, value := range names[1:] {
		one := *v
		one.with = append(slices.Clone(v.with), [2]string{"{" + names[0] + "}", value})
		one.asks, one.name = slices.Clone(v.asks), v.name+", "+value
		all = append(all, spread(&one, each[1:])...)
	}
	return all
}

// add takes a line that is the variant's own, in place of what the case has set.
func (v *variant) add(key, value string) {
	if key == "then" {
		verb, rest, _ := strings.Cut(value, " ")
		v.asks = append(v.asks, [2]string{verb, rest})
		return
	}
	if !v.own[key] {
		v.set, v.own = maps.Clone(v.set), maps.Clone(v.own)
		if v.own == nil {
			v.own = map[string]bool{}
		}
		v.set[key], v.own[key] = nil, true
	}
	v.set[key] = append(v.set[key], value)
}

func (v *variant) has(key string) bool { return v.set[key] != nil }

var (
	repeats = regexp.MustCompile(`\{(\d+)\*([^{}]*)\}`)
	basics  = regexp.MustCompile(`\{basic ([^{}]*)\}`)
)

// fill puts values in the place of names in braces, and bytes in that of escapes.
func (v *variant) fill(c *testCase, s string) string {
	for _, w := range v.with {
		s = strings.ReplaceAll(s, w[0], w[1])
	}
	s, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
	if err != nil {
		c.t.Fatalf("%s: %q: %v", c.name, s, err)
	}
	_, port, err := net.SplitHostPort(c.s.addr)
	c.must(err)
	pairs := []string{"{auth}", strings.TrimSuffix(c.authorization(), "\r\n"), "{token}", c.s.token, "{addr}", c.s.addr,
		"{port}", port, "{stars}", stars(40), "{stars:20}", stars(20),
		"{follow-up}", head("GET", "api.good.test", "/v1/items")}
	for name, secret := range on.secrets {
		pairs = append(pairs, "{"+name+"}", secret, "{"+name+":20}", secret[:20], "{"+name+":-20}", secret[20:])
	}
	s = strings.NewReplacer(pairs...).Replace(s)
	s = basics.ReplaceAllStringFunc(s, func(m string) string {
		user, password, _ := strings.Cut(basics.FindStringSubmatch(m)[1], ":")
		return basicAuth(user, password)
	})
	return repeats.ReplaceAllStringFunc(s, func(m string) string {
		parts := repeats.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[1])
		return strings.Repeat(parts[2], n)
	})
}

// all returns the values of a setting; one that is empty takes back what was set.
func (v *variant) all(c *testCase, key string) []string {
	var values []string
	for _, value := range v.set[key] {
		if value != "" {
			values = append(values, v.fill(c, value))
		}
	}
	return values
}

// one returns the only value of a setting, or the one otherwise.
func (v *variant) one(c *testCase, key, otherwise string) string {
	for _, value := range v.all(c, key) {
		return value
	}
	return otherwise
}

// fixture is the world that a case asks for; nil is the category's.
func (v *variant) fixture() *fixture {
	if !v.has("session") {
		return nil
	}
	kind, names, _ := strings.Cut(v.set["session"][0], " ")
	switch kind {
	case "connectors":
		return &fixture{connectors: append([]string{}, strings.Fields(names)...)}
	case "passing":
		return passing()
	case "redirected":
		return &fixture{door: front.Listener{Sealed: true, Redirected: true}}
	}
	panic("no such session: " + kind)
}

func (v *variant) run(c *testCase) {
	to := v.one(c, "to", "api.good.test")
	host, _, _ := strings.Cut(v.one(c, "origin", strings.ToLower(to)), ":")
	c.anew, c.strays, c.unfit, c.bulk = v.has("anew"), v.has("strays"), v.has("unfit"), v.has("bulk")
	permitted := v.all(c, "permits")
	c.permits = func(h hit) bool {
		return slices.Contains(permitted, "any") || slices.Contains(permitted, h.Method+" "+h.Target)
	}
	if v.has("resolves") { // to another host, or to none
		from, other, _ := strings.Cut(v.one(c, "resolves", ""), " ")
		var addrs []netip.Addr
		if at, ok := places[other]; ok {
			addrs = append(addrs, at)
		}
		on.names.answers(func(name string, _ bool) ([]netip.Addr, bool) { return addrs, name == from })
	}
	if v.has("answer") {
		answer := v.one(c, "answer", "")
		c.origin(host).plays(func(x *visit) {
			x.body()
			x.send("%s", whole(strings.ReplaceAll(answer, "{secret}", x.credential())))
			x.close = v.has("close")
		})
	}
	names := v.all(c, "host")
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		v.judge(c, v.ask(c, to, name))
	}
	if rows := v.one(c, "rows", ""); rows != "" {
		c.rows = map[string]int{"any": -1, "0": 0, "1": 1}[rows]
	}
	if v.has("dropped") {
		return // it is judged already
	}
	v.judgeHits(c, host)
	v.judgeRows(c)
	if v.has("strict") {
		c.strictHeads()
	}
	if v.has("unpoisoned") {
		c.unpoisoned(host)
	}
}

var packs = regexp.MustCompile(`\{(gzip twice|gzip|zlib|deflate) ([^{}]*)\}`)

// whole is an answer with what it packs, and the length of its body.
func whole(answer string) string {
	answer = packs.ReplaceAllStringFunc(answer, func(m string) string {
		parts := packs.FindStringSubmatch(m)
		if parts[1] == "gzip twice" {
			return string(gzipped(string(gzipped(parts[2]))))
		}
		return string(packers[parts[1]](parts[2]))
	})
	_, body, _ := strings.Cut(answer, "\r\n\r\n")
	return strings.Replace(answer, "{length}", strconv.Itoa(len(body)), 1)
}

// request is the bytes of one, by its verb.
func (v *variant) request(c *testCase, to, host, verb, rest string) (raw string) {
	rest = v.fill(c, rest)
	fields, body := v.all(c, "with"), v.one(c, "body", "")
	if v.has("body") {
		fields = append(fields, fmt.Sprintf("Content-Length: %d", len(body)))
	}
	if v.one(c, "way", "") == "proxy" && !v.has("stranger") {
		fields = append([]string{strings.TrimSuffix(c.authorization(), "\r\n")}, fields...)
	}
	switch method, target, _ := strings.Cut(rest, " "); verb {
	case "send":
		return v.one(c, "begin", "") + rest + v.one(c, "end", "")
	case "connect":
		return head("CONNECT", first(host, rest), rest, fields...)
	case "get":
		return head("GET", first(host, to), rest, fields...) + body
	case "post":
		return head("POST", first(host, to), rest, fields...) + body
	default:
		return head(method, first(host, to), target, fields...) + body
	}
}

// ask sends the requests, and returns the answers in their order.
func (v *variant) ask(c *testCase, to, host string) []answer {
	verb, rest := v.asks[0][0], v.asks[0][1]
	for _, w := range v.with {
		rest = strings.ReplaceAll(rest, w[0], w[1])
	}
	way, fields := v.one(c, "way", ""), v.all(c, "with")
	method, target, _ := strings.Cut(v.fill(c, rest), " ")
	switch {
	case verb == "h2":
		h := c.h2(to)
		c.rows++
		var pairs []string
		for _, field := range strings.Fields(rest) {
			name, value, _ := strings.Cut(field, "=")
			pairs = append(pairs, v.fill(c, name), v.fill(c, value))
		}
		h.send(1, true, pairs...)
		return []answer{h.answer(1)}
	case verb == "call":
		return []answer{c.call(method, target)}
	case verb == "run":
		return []answer{c.invoke(v.fill(c, rest))}
	case verb == "act":
		return []answer{c.act(v.fill(c, rest))}
	case verb == "carry":
		parts := append(strings.SplitN(rest, " ", 3), "")
		return []answer{c.carry(v.fill(c, parts[0]), v.fill(c, parts[1]), v.fill(c, parts[2]))}
	case v.has("dropped"):
		c.dropped(to, fields...)
		return nil
	case way == "doors":
		return slices.Collect(maps.Values(c.doors(method, target, fields...)))
	case way == "api":
		c.rows++
		return []answer{c.ask(method, target, v.one(c, "body", ""), fields...)}
	}
	raw, methods := "", []string{}
	for _, a := range v.asks {
		one := v.request(c, to, host, a[0], a[1])
		method, _, _ := strings.Cut(one, " ")
		raw, methods = raw+one, append(methods, method)
	}
	c.rows += len(methods)
	return c.say(v.line(c, way, to), raw, methods...)
}

// line opens the connection on which a request is sent.
func (v *variant) line(c *testCase, way, to string) *line {
	switch way {
	case "proxy":
		return c.dial()
	case "clear", "sni":
		l, a := c.connect(to)
		c.is("CONNECT", a, 200)
		if way == "sni" {
			in, err := c.secure(l, named(v.one(c, "sni", "")))
			c.must(err)
			return in
		}
		return l
	}
	return c.tunnel(to)
}

// judge compares each answer with what is wanted of it.
func (v *variant) judge(c *testCase, answers []answer) {
	wants := v.all(c, "want")
	if len(wants) == 0 {
		wants = []string{"200"}
	}
	for i, a := range answers {
		want := strings.SplitN(wants[min(i, len(wants)-1)], " ", 4)
		what := fmt.Sprintf("answer %d", i+1)
		status, _ := strconv.Atoi(want[0])
		switch {
		case want[0] == "any":
		case len(want) == 1:
			c.is(what, a, status)
		case len(want) == 2:
			c.relayed(what, a, status)
		case v.has("ended") || v.asks[0][0] == "h2":
			c.ended(what, a, refusal{status, want[1], want[2], strings.Join(want[3:], " ")})
		default:
			c.refused(what, a, refusal{status, want[1], want[2], strings.Join(want[3:], " ")})
		}
		v.judgeAnswer(c, a)
	}
}

// judgeAnswer compares an answer with what each must have.
func (v *variant) judgeAnswer(c *testCase, a answer) {
	if a.interim != 0 {
		c.failf("%d interim answers arrived", a.interim)
	}
	if want := v.one(c, "got", a.body); a.body != want {
		c.failf("got %q, want %q", a.body, want)
	}
	for _, has := range v.all(c, "has") {
		if !strings.Contains(a.body, has) {
			c.failf("got %.300q, want %q in it", a.body, has)
		}
	}
	for _, field := range v.all(c, "header") {
		name, value, _ := strings.Cut(field, ":")
		value = strings.TrimSpace(value)
		if got := a.header.Get(name); got != value && (value != "*" || got == "") {
			c.failf("%s is %q, want %q", name, got, value)
		}
	}
	text := fmt.Sprint(a.header, a.body)
	for _, word := range v.all(c, "lacks") {
		if strings.Contains(strings.ToLower(text), strings.ToLower(word)) {
			c.failf("%q arrived: %.300s", word, text)
		}
	}
	if told := insides.FindString(text); told != "" && v.has("discreet") {
		c.failf("%q is told: %s", told, a.body)
	}
	if v.has("torn") && (a.status != 200 || a.err == nil) {
		c.failf("the client took it for whole: %s", a)
	}
}

// judgeHits compares what reached the origin.
func (v *variant) judgeHits(c *testCase, host string) {
	hits := c.hits(host)
	refused := v.has("want")
	for _, want := range v.all(c, "want") {
		refused = refused && strings.Count(want, " ") >= 2
	}
	switch sent := v.one(c, "sent", ""); {
	case sent == "" && (v.has("untouched") || refused && !v.has("answer")):
		c.untouched()
	case sent != "" && sent != "any" && sent != strconv.Itoa(len(hits)):
		c.failf("%s got %d requests, want %s", host, len(hits), sent)
	}
	if absent := v.all(c, "absent"); len(absent) > 0 {
		c.absent(host, absent...)
	}
	for _, h := range hits {
		_, raw, _ := strings.Cut(h.Target, "?")
		query, _ := url.ParseQuery(raw) // without the pairs that cannot be read
		if want := v.one(c, "query", query.Encode()); query.Encode() != want {
			c.failf("the origin got the query %q, want %q", query.Encode(), want)
		}
		for _, field := range v.all(c, "arrives") {
			name, value, _ := strings.Cut(field, ": ")
			if got := h.Header.Values(name); len(got) != 1 || got[0] != value {
				c.failf("the origin got %s: %q, want %q", name, got, value)
			}
		}
		if name := v.one(c, "one", ""); name != "" {
			c.once(query, name)
		}
	}
}

// once fails the case unless every parser of a query reads a name once, with the secret of the host q.
func (c *testCase) once(query url.Values, name string) {
	if got := query[name]; len(got) != 1 || got[0] != on.secrets["S3"] {
		c.failf("the origin reads %s as %d values", name, len(got))
	}
	for other, v := range query {
		folded := strings.NewReplacer(".", "_", " ", "_", "[]", "").Replace(strings.ToLower(other))
		if other != name && (folded == name || strings.Contains(other, "\x00")) {
			c.failf("another parser reads %s as %q", name, v)
		}
	}
}

// judgeRows compares the audit rows.
func (v *variant) judgeRows(c *testCase) {
	c.unwritten(v.all(c, "unwritten")...)
	if names := v.one(c, "names", ""); names != "" {
		c.names(strings.Fields(names)...)
	}
	want, source := v.one(c, "row", ""), v.one(c, "source", "")
	if want+source == "" {
		return
	}
	rows := c.settledRows()
	last := rows[len(rows)-1]
	got := fmt.Sprintf("%s %s %s %d %d", last.Event, last.Decision, last.Reason, last.Status, last.Redactions)
	if want != "" && got != want || source != "" && string(last.Source) != source {
		c.failf("the row says %q of the source %s, want %q of %s", got, last.Source, want, source)
	}
}

// strictHeads fails the case unless the head of the answer in the tunnel, byte by byte, can be read in one way only.
func (c *testCase) strictHeads() {
	judged := false
	for _, l := range c.lines {
		got, _, _ := strings.Cut(string(l.received()), "\r\n\r\n")
		if _, inside := l.Conn.(*tls.Conn); !inside {
			continue
		}
		judged = judged || strings.HasPrefix(got, "HTTP/1.1 ")
		if strings.ContainsAny(strings.ReplaceAll(got, "\r\n", ""), "\r\n\x00") {
			c.failf("the client got the head %q", got)
		}
		// The reason phrase of a denial has parentheses of its own.
		if _, fields, _ := strings.Cut(got, "\r\n"); strings.Contains(fields, " :") || strings.Contains(fields, "(") {
			c.failf("the client got a name that is none: %q", got)
		}
	}
	if !judged {
		c.failf("there is no head to judge")
	}
}

// join adds what is written down to cases of the same id, or as cases of its own.
func join(in []attack, cases []attack) []attack {
	for _, w := range in {
		i := slices.IndexFunc(cases, func(a attack) bool { return a.id == w.id })
		if i < 0 {
			cases = append(cases, w)
			continue
		}
		program := cases[i].run
		cases[i].run = func(c *testCase) { c.each("by program", program); w.run(c) }
	}
	return cases
}
