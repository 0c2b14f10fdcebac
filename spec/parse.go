package spec

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/ALRubinger/aileron/spec/hosts"
	"github.com/ALRubinger/aileron/spec/internal/plain"
	"github.com/ALRubinger/aileron/spec/internal/template"

	"github.com/ALRubinger/aileron/spec/internal/strictjson"
)

// Schema is the only schema_version that is read.
const Schema = "aileron.connector.v1"

// Parse reads aileron.connector.v1.json. Its error joins all mistakes;
// [Diagnostics] returns them one by one. The strings of the connector are parts
// of data, which must not be changed.
func Parse(data []byte) (*Connector, error) {
	var d diagnostics
	// All connectors of a home are read at each start, and kept: a copy costs as much time as to read a third of it.
	text := unsafe.String(unsafe.SliceData(data), len(data)) //nolint:gosec // its bytes are not changed
	v, ok := strictjson.ReadText(text, strictjson.Bounds{Size: MaxSpecSize, Depth: maxSpecDepth}, d.report)
	if ok && len(d.list) == 0 {
		// Most have no mistake, and then no path is needed: the second reading is for those that have.
		c, quick := &Connector{}, diagnostics{pathless: true}
		if c.read(v, &quick); len(quick.list) == 0 {
			return c, nil
		}
	}
	c := &Connector{}
	if ok {
		c.read(v, &d)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Connector) read(v any, d *diagnostics) {
	top, ok := d.open(v, "", "schema_version", "connector", "placeholders", "headers", "tools")
	if !ok {
		return
	}
	if got := top.text("schema_version", true); got != Schema && got != "" {
		d.add("schema_version", "it is %q, not %q", got, Schema)
	}
	connector, _ := top.o.Get("connector")
	if id, ok := d.open(connector, "connector", "fqn", "version"); ok {
		fqn, version := id.text("fqn", true), id.text("version", true)
		var err error
		if c.FQN, err = ParseFQN(fqn); err != nil && fqn != "" {
			d.add("connector.fqn", "%v", err)
		}
		if c.Version = version; !isVersion(version) && version != "" {
			d.add("connector.version", "%q is not a MAJOR.MINOR.PATCH version", version)
		}
	}
	c.readPlaceholders(top)
	c.readTools(top)
	c.shareHeaders(top)
	c.checkOneKind(top)
	c.checkAllJudge(top)
	c.linkPreviews()
}

// checkOneKind records the first operation whose credential is of a second kind.
func (c *Connector) checkOneKind(top node) {
	var kind Kind
	for i, t := range c.Tools {
		for j, op := range t.Operations {
			if op.Injection == nil {
				continue
			}
			if kind = cmp.Or(kind, op.Injection.Kind); kind != op.Injection.Kind {
				top.diags.add(top.item("tools", i)+within("operations", j)+".credential",
					"it is the second kind; a connector has at most one")
				return
			}
		}
	}
}

// within returns the part of a path that follows an entry of another list.
func within(key string, i int) string { return "." + key + "[" + strconv.Itoa(i) + "]" }

func (c *Connector) readTools(top node) {
	seen := map[string]bool{} // names in lower case
	for i, v := range top.list("tools", true, 0) {
		c.Tools = append(c.Tools, c.readTool(top, v, top.item("tools", i), seen))
	}
}

// readTool reads a tool whose name is not among those seen, and adds it to them.
func (c *Connector) readTool(top node, v any, path string, seen map[string]bool) Tool {
	n, ok := top.diags.open(v, path, "name", "description", "operations")
	if !ok {
		return Tool{}
	}
	t := Tool{Name: n.text("name", true), Description: n.text("description", false)}
	lower := strings.ToLower(t.Name)
	if t.Name != "" && seen[lower] {
		n.diags.add(n.at("name"), "%q appears twice", t.Name)
	} else if why := badToolName(t.Name); t.Name != "" && why != "" {
		n.diags.add(n.at("name"), "%q %s", t.Name, why)
	}
	seen[lower] = true
	operations := n.list("operations", true, 0)
	names := make(map[string]bool, len(operations))
	t.Operations = slices.Grow(t.Operations, len(operations))
	all := make([]Operation, len(operations))
	known := map[string]HostPattern{}
	for i, v := range operations {
		op := &all[i]
		c.readOperation(op, n, v, n.item("operations", i), known)
		op.Tool = t.Name
		if lower := strings.ToLower(op.Name); names[lower] && lower != "" {
			n.diags.add(n.item("operations", i)+".name", "%q appears twice", op.Name)
		} else {
			names[lower] = true
		}
		t.Operations = append(t.Operations, op)
	}
	return t
}

// operationKeys are the keys of an operation, those of most in front.
var operationKeys = []string{"name", "group", "summary", "description", "method", "path", "hosts",
	"idempotency", "response_timeout", "approval", "credential", "inputs", "audit", "query", "upgrade", "ranges",
	"packed", "wildcard_credential", "headers", "escaped_slash", "mcp", "graphql", "meter", "meter_model", "body",
	"content_type", "preview", "optional_slash"}

// readOperation reads an operation. known are the hosts of those before.
func (c *Connector) readOperation(op *Operation, tool node, v any, path string, known map[string]HostPattern) {
	op.Connector, op.Approval = c, ApprovalNone
	n, ok := tool.diags.open(v, path, operationKeys...)
	if !ok {
		return
	}
	op.Name, op.Summary, op.Description = n.text("name", true), n.text("summary", false), n.text("description", false)
	if op.Name != "" && !plain.IsName(op.Name, "._:-") {
		n.diags.add(n.at("name"), "%q is not letters, digits, dots, dashes, underscores and colons", op.Name)
	}
	op.readGroup(n)
	op.readMethod(n)
	op.readPath(n)
	if n.flag("escaped_slash") {
		op.admitSlash(n, "")
	}
	if n.flag("optional_slash") && !op.Path.AdmitNoSlash() {
		n.diags.add(n.at("optional_slash"), "the path has no slash at its end, behind a segment")
	}
	op.readHosts(n, known)
	op.Idempotent = n.choice("idempotency", "idempotent", "none") == "idempotent"
	op.readResponseTimeout(n)
	op.Upgrade, op.Ranges, op.Packed = n.choice("upgrade", "websocket"), n.flag("ranges"), n.flag("packed")
	op.readInputs(n)
	op.readBody(n)
	switch n.choice("query", "declared", "any") {
	case "declared":
		op.QueryDeclaredOnly = true
	case "":
		op.QueryDeclaredOnly = len(op.Inputs) > 0
	}
	inQuery := func(in *Input) bool { return in.In == InQuery }
	if !op.QueryDeclaredOnly && slices.ContainsFunc(op.limited, inQuery) {
		n.diags.add(n.at("query"), "it is \"any\", and an input declares its values: they need \"declared\"")
	}
	op.readApproval(n)
	op.readMCP(n)
	op.readGraphQL(n)
	op.readAudit(n)
	op.readMeters(n)
	op.readMeterModel(n)
	op.readCredential(n)
	op.readPreview(n)
	op.readHeaders(n)
}

// maxResponseTimeout bounds response_timeout.
const maxResponseTimeout = 24 * time.Hour

func (op *Operation) readResponseTimeout(n node) {
	text := n.text("response_timeout", false)
	if text == "" {
		return
	}
	var err error
	if op.ResponseTimeout, err = time.ParseDuration(text); err != nil || op.ResponseTimeout < time.Second ||
		op.ResponseTimeout > maxResponseTimeout {
		n.diags.add(n.at("response_timeout"), "%q is not a time from 1s to 24h, such as \"10m\"", text)
	}
}

func (op *Operation) readPath(n node) {
	if _, has := n.o.Get("path"); !has {
		return
	}
	text := n.text("path", true)
	if text == "" {
		return
	}
	var err error
	if op.Path, err = ParseTemplate(text); err != nil {
		n.diags.add(n.at("path"), "%v", err)
	}
}

// admitSlash allows escaped slashes in a variable, with "" in each, as n declares.
func (op *Operation) admitSlash(n node, name string) {
	isVariable := func(s template.Segment) bool { return s.IsAlone() && (name == "" || s.Name == name) }
	if !slices.ContainsFunc(op.Path.Segments(), isVariable) {
		n.diags.add(n.at("escaped_slash"), "only a variable that is a whole segment of the path may have an escaped slash")
	}
	op.Path.AdmitSlash(name)
}

func (op *Operation) readHosts(n node, known map[string]HostPattern) {
	for i, v := range n.list("hosts", true, maxItems) {
		s, ok := v.(string)
		if !ok {
			n.diags.add(n.item("hosts", i), "it is not a string")
			continue
		}
		h, isKnown := known[s]
		var err error
		if !isKnown {
			h, err = hosts.ParseDeclared(s)
		}
		if err == nil {
			known[s] = h
		}
		switch {
		case err != nil:
			n.diags.add(n.item("hosts", i), "%v", err)
		case slices.Contains(op.Hosts, h):
			n.diags.add(n.item("hosts", i), "%q appears twice", s)
		}
		op.Hosts = append(op.Hosts, h)
	}
}

func (op *Operation) readAudit(n node) {
	seen := map[string]bool{}
	for i, v := range n.list("audit", false, maxItems) {
		a, ok := n.diags.open(v, n.item("audit", i), "name", "source", "redact", "description")
		if !ok {
			continue
		}
		field := AuditField{
			Name:        a.text("name", true),
			Source:      a.text("source", true),
			Description: a.text("description", false),
			Redact:      a.flag("redact"),
		}
		switch {
		case field.Name == "":
		case !plain.IsName(field.Name, "._:-"):
			n.diags.add(a.at("name"), "%q is not a name of letters, digits, dots, dashes, underscores and colons",
				field.Name)
		case slices.Contains(reservedAuditFields, field.Name):
			n.diags.add(a.at("name"), "%q is a field of aileron's own; choose another name", field.Name)
		case seen[field.Name]:
			n.diags.add(a.at("name"), "%q appears twice", field.Name)
		}
		if why := op.badSource(field.Source); why != "" && field.Source != "" {
			n.diags.add(a.at("source"), "%q %s", field.Source, why)
		}
		seen[field.Name] = true
		op.Audit = append(op.Audit, field)
	}
}

// badSource returns why an audit field cannot come from source, or "" if it can.
func (op *Operation) badSource(source string) string {
	if variable, ok := strings.CutPrefix(source, "path."); ok {
		if !op.Path.Has(variable) {
			return "names no variable of the path"
		}
		return ""
	}
	inner, ok := strings.CutPrefix(source, "response.body.")
	if !ok {
		return "is neither path.NAME nor response.body.PATH"
	}
	return badBodyPath(inner)
}

// badBodyPath returns why a path is no plain one of gjson, or "" if it is. No modifiers, queries, multipaths, escapes
// or literals: gjson would compute with them, and a reviewer could not see which value is meant.
func badBodyPath(path string) string {
	if strings.ContainsAny(path, "@|{}[]()!~<>=%`\"\\$,") || slices.Contains(strings.Split(path, "."), "") {
		return "is not a plain gjson path"
	}
	return ""
}

// methods are the names of the IANA HTTP Method Registry, without three:
// CONNECT opens a tunnel, TRACE returns the request with its credential in
// the response body (RFC 9110 section 9.3.8), and PRI is part of the HTTP/2
// preface. The server alone decides what a name that is not registered means,
// so no operation can declare what it would do.
var methods = strings.Fields(`
	ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT COPY DELETE GET HEAD LABEL LINK LOCK MERGE MKACTIVITY MKCALENDAR
	MKCOL MKREDIRECTREF MKWORKSPACE MOVE OPTIONS ORDERPATCH PATCH POST PROPFIND PROPPATCH PUT QUERY REBIND REPORT
	SEARCH UNBIND UNCHECKOUT UNLINK UNLOCK UPDATE UPDATEREDIRECTREF VERSION-CONTROL`)

// isMethod reports whether an operation may have the method. Methods are
// case-sensitive.
func isMethod(s string) bool { return slices.Contains(methods, s) }

// acceptsMethod reports whether the operation accepts the method. "*" stands for the
// registered ones; only an operation that allows its hosts as they are
// accepts every name.
func (op *Operation) acceptsMethod(method string) bool {
	if op.Method == "" || op.Method == "*" {
		return isMethod(method) || op.Method == "" && op.AnyPath()
	}
	return op.Method == method
}

func (op *Operation) readMethod(n node) {
	if _, has := n.o.Get("method"); !has {
		return
	}
	op.Method = n.text("method", true)
	if op.Method != "" && op.Method != "*" && !isMethod(op.Method) {
		n.diags.add(n.at("method"), "%q %s", op.Method, badMethod(op.Method))
	}
}

// badMethod returns why an operation cannot have the method.
func badMethod(s string) string {
	switch upper := strings.ToUpper(s); {
	case upper == "CONNECT" || upper == "TRACE" || upper == "TRACK" || upper == "PRI":
		return "is never forwarded"
	case isMethod(upper):
		return "is not a method, for methods are case-sensitive: use " + quote(upper)
	}
	return "is not in the IANA HTTP Method Registry"
}

// Placeholder is an environment variable with a harmless value, for a tool that
// does not start without a credential.
type Placeholder struct{ Env, Value string }

func (c *Connector) readPlaceholders(top node) {
	seen := map[string]bool{}
	for i, v := range top.list("placeholders", false, maxItems) {
		n, ok := top.diags.open(v, top.item("placeholders", i), "env", "value")
		if !ok {
			continue
		}
		p := Placeholder{Env: n.text("env", true), Value: n.text("value", true)}
		switch why := badPlaceholder(p.Env); {
		case p.Env == "":
		case why != "":
			n.diags.add(n.at("env"), "%q %s", p.Env, why)
		case seen[p.Env]:
			n.diags.add(n.at("env"), "%q appears twice", p.Env)
		}
		if len(p.Value) > 256 || !isPlainValue(p.Value) {
			n.diags.add(n.at("value"), "it is not at most 256 letters, digits and any of . _ - + = : @ / ~")
		}
		seen[p.Env] = true
		c.Placeholders = append(c.Placeholders, p)
	}
}

// isPlainValue reports whether shells, loaders and parsers read s as one word.
func isPlainValue(s string) bool {
	for _, c := range []byte(s) {
		if !plain.IsAlnum(c) && strings.IndexByte("._-+=:@/~", c) < 0 {
			return false
		}
	}
	return true
}

// placeholderSuffixes are the ends of the names that a connector may set: those of
// a credential or its owner.
var placeholderSuffixes = strings.Fields("_TOKEN _KEY _SECRET _PASSWORD _ID _USER _ACCOUNT")

// reservedVariables are prefixes of names that steer a sandbox, a loader, a
// shell, or a client's proxy and trust. They are refused whatever their end:
// GIT_ASKPASS_TOKEN or SSH_KEY may become meaningful in a program's next
// release. Package managers are not among them, as they expect a credential in
// NODE_AUTH_TOKEN and CARGO_REGISTRY_TOKEN.
var reservedVariables = strings.Fields(`
	AILERON LD_ DYLD_ GIT_ SSL_ TLS_ BASH PYTHON JAVA_TOOL JDK_ _JAVA NPM_CONFIG CURL_ REQUESTS_ OPENSSL_ GODEBUG GCONV_
	GLIBC_ MALLOC_ LC_ XDG_ HTTP_ HTTPS_ FTP_ ALL_PROXY NO_PROXY PROXY_ SUDO_ SSH_ GPG_ PROMPT`)

// badPlaceholder returns why a connector cannot set the variable, or "" if it can.
func badPlaceholder(s string) string {
	begins := func(p string) bool { return strings.HasPrefix(s, p) }
	ends := func(p string) bool { return strings.HasSuffix(s, p) && len(s) > len(p) }
	switch {
	case !plain.IsName(s, "_") || strings.ToUpper(s) != s || s[0] <= '9':
		return "is not a variable's name in upper case"
	case slices.ContainsFunc(reservedVariables, begins):
		return "is not a variable that a connector may set: names that begin like this steer programs"
	case !slices.ContainsFunc(placeholderSuffixes, ends):
		return "is not a variable that a connector may set: its name must end in " + strings.Join(placeholderSuffixes, ", ")
	}
	return ""
}
