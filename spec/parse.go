package spec

import (
	"slices"
	"strings"
)

// Schema is the only schema_version.
const Schema = "aileron.connector.v1"

// Parse reads aileron.connector.v1.json. All its faults are reported at once.
func Parse(data []byte) (*Connector, error) {
	v, err := readJSON(data)
	if err != nil {
		return nil, err
	}
	var f faults
	top, ok := f.open(v, "", "schema_version", "connector", "placeholders", "tools")
	if !ok {
		return nil, f.err()
	}
	if got := top.text("schema_version", true); got != Schema && got != "" {
		f.add("schema_version", "it is %q, not %q", got, Schema)
	}
	c := &Connector{}
	if id, ok := f.open(top.o["connector"], "connector", "fqn", "version"); ok {
		if c.FQN, err = ParseFQN(id.text("fqn", true)); err != nil {
			f.add("connector.fqn", "%v", err)
		}
		if c.Version = id.text("version", true); !isVersion(c.Version) {
			f.add("connector.version", "%q is not a MAJOR.MINOR.PATCH version", c.Version)
		}
	}
	c.readPlaceholders(top)
	c.readTools(top)
	if err := f.err(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Connector) readPlaceholders(top node) {
	seen := map[string]bool{}
	for i, v := range top.list("placeholders", false) {
		n, ok := top.f.open(v, top.item("placeholders", i), "env", "value")
		if !ok {
			continue
		}
		p := Placeholder{Env: n.text("env", true), Value: n.text("value", true)}
		switch {
		case !isPlaceholderName(p.Env):
			n.f.add(n.path+".env", "%q is not a variable that a connector may set", p.Env)
		case seen[p.Env]:
			n.f.add(n.path+".env", "%q is there twice", p.Env)
		case len(p.Value) > 256:
			n.f.add(n.path+".value", "it is longer than 256 bytes")
		}
		seen[p.Env] = true
		c.Placeholders = append(c.Placeholders, p)
	}
}

// isPlaceholderName reports an upper-case variable name that steers neither
// the box, a loader, a shell nor a client's proxy or trust.
func isPlaceholderName(s string) bool {
	if !isName(s, "_") || strings.ToUpper(s) != s || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for _, prefix := range []string{"AILERON", "LD_", "DYLD_", "GIT_", "NODE_", "SSL_", "BASH", "PYTHON", "PERL", "RUBY", "JAVA", "DENO_", "NPM_CONFIG", "CARGO_", "CURL_", "REQUESTS_", "PIP_"} {
		if strings.HasPrefix(s, prefix) {
			return false
		}
	}
	for _, suffix := range []string{"_PROXY", "_BUNDLE", "_CAINFO", "_CERT", "_CERTS", "_URL", "_HOST", "_ENDPOINT"} {
		if strings.HasSuffix(s, suffix) {
			return false
		}
	}
	return !slices.Contains([]string{"PATH", "HOME", "USER", "SHELL", "IFS", "ENV", "PS1", "PS4", "TMPDIR", "PWD", "TERM", "LANG", "EDITOR", "PAGER", "BROWSER"}, s)
}

// reservedTools would stand before commands that a box relies on.
var reservedTools = strings.Fields(`
	sh ash bash dash zsh fish ksh env sudo su doas exec command eval test true false echo printf kill nohup timeout xargs find which
	ls cat cp mv rm ln mkdir rmdir chmod chown chroot dd df du head tail grep egrep fgrep sed awk gawk mawk sort uniq wc tr cut tee tar gzip gunzip
	wget curl git ssh scp sftp rsync nc ncat socat openssl gpg apt apt-get dpkg apk yum dnf rpm pip pip3 npm npx node bun deno go cargo rustc
	python python2 python3 perl ruby php java javac gcc cc make ld ld.so ldconfig mount umount ip nft iptables podman docker busybox
	aileron claude codex opencode goose pi gh con prn aux nul`)

func isToolName(s string) bool {
	return isName(s, "._:-") && len(s) <= 64 && !slices.Contains(reservedTools, strings.ToLower(s))
}

func (c *Connector) readTools(top node) {
	seen := map[string]bool{}
	for i, v := range top.list("tools", true) {
		n, ok := top.f.open(v, top.item("tools", i), "name", "description", "operations")
		if !ok {
			continue
		}
		t := Tool{Name: n.text("name", true), Description: n.text("description", false)}
		lower := strings.ToLower(t.Name)
		switch {
		case !isToolName(t.Name):
			n.f.add(n.path+".name", "%q is not a free command name of letters, digits, dots, dashes, underscores and colons", t.Name)
		case seen[lower]:
			n.f.add(n.path+".name", "%q is there twice", t.Name)
		}
		seen[lower] = true
		names := map[string]bool{}
		for j, v := range n.list("operations", true) {
			op := c.readOperation(n, v, n.item("operations", j))
			if op == nil {
				continue
			}
			op.Tool = t.Name
			if lower := strings.ToLower(op.Name); names[lower] {
				n.f.add(n.item("operations", j)+".name", "%q is there twice", op.Name)
			} else {
				names[lower] = true
			}
			t.Operations = append(t.Operations, op)
		}
		c.Tools = append(c.Tools, t)
	}
}

func (c *Connector) readOperation(tool node, v any, path string) *Operation {
	n, ok := tool.f.open(v, path, "name", "summary", "description", "method", "path", "hosts", "idempotency", "approval",
		"credential", "inputs", "audit", "query", "upgrade", "ranges", "wildcard_credential")
	if !ok {
		return nil
	}
	op := &Operation{Connector: c, Name: n.text("name", true), Summary: n.text("summary", false), Description: n.text("description", false),
		Method: n.text("method", false), Approval: n.text("approval", false), Upgrade: n.text("upgrade", false), Ranges: n.flag("ranges")}
	if !isName(op.Name, "._:-") {
		n.f.add(n.path+".name", "%q is not letters, digits, dots, dashes, underscores and colons", op.Name)
	}
	if op.Method != "" && op.Method != "*" && !isMethod(op.Method) {
		n.f.add(n.path+".method", "%q is not an upper-case method or \"*\"", op.Method)
	}
	if _, has := n.o["path"]; has {
		var err error
		if text := n.text("path", true); text != "" {
			if op.Path, err = ParseTemplate(text); err != nil {
				n.f.add(n.path+".path", "%v", err)
			}
		}
	}
	for i, v := range n.list("hosts", true) {
		s, _ := v.(string)
		h, err := ParseHost(s)
		switch {
		case err != nil:
			n.f.add(n.item("hosts", i), "%v", err)
		case slices.Contains(op.Hosts, h):
			n.f.add(n.item("hosts", i), "%q is there twice", s)
		default:
			op.Hosts = append(op.Hosts, h)
		}
	}
	switch idem := n.text("idempotency", false); idem {
	case "", "none":
	case "idempotent":
		op.Idempotent = true
	default:
		n.f.add(n.path+".idempotency", "%q is neither \"idempotent\" nor \"none\"", idem)
	}
	switch op.Approval {
	case "":
		op.Approval = "none"
	case "none", "required":
	default:
		n.f.add(n.path+".approval", "%q is neither \"none\" nor \"required\"", op.Approval)
	}
	if op.Upgrade != "" && op.Upgrade != "websocket" {
		n.f.add(n.path+".upgrade", "%q is not \"websocket\"", op.Upgrade)
	}
	op.readInputs(n)
	op.readQuery(n)
	op.readAudit(n)
	op.readCredential(n)
	return op
}

func isMethod(s string) bool {
	return s != "CONNECT" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") == "" && len(s) <= 32
}

func (op *Operation) readInputs(n node) {
	seen := map[string]bool{}
	for i, v := range n.list("inputs", false) {
		in, ok := n.f.open(v, n.item("inputs", i), "name", "type", "required", "description")
		if !ok {
			continue
		}
		input := Input{Name: in.text("name", true), Type: in.text("type", false), Description: in.text("description", false), Required: in.flag("required")}
		switch {
		case !isName(input.Name, "._:-") && !strings.HasPrefix(input.Name, "_"):
			n.f.add(in.path+".name", "%q is not letters, digits, dots, dashes, underscores and colons", input.Name)
		case seen[input.Name]:
			n.f.add(in.path+".name", "%q is there twice", input.Name)
		case !slices.Contains([]string{"", "string", "integer", "number", "boolean", "array", "object"}, input.Type):
			n.f.add(in.path+".type", "%q is not a JSON type", input.Type)
		}
		seen[input.Name] = true
		op.Inputs = append(op.Inputs, input)
	}
}

func (op *Operation) readQuery(n node) {
	switch q := n.text("query", false); q {
	case "":
		op.QueryDeclaredOnly = len(op.Inputs) > 0
	case "declared":
		op.QueryDeclaredOnly = true
	case "any":
	default:
		n.f.add(n.path+".query", "%q is neither \"declared\" nor \"any\"", q)
	}
}

func (op *Operation) readAudit(n node) {
	seen := map[string]bool{}
	for i, v := range n.list("audit", false) {
		a, ok := n.f.open(v, n.item("audit", i), "name", "source", "redact", "description")
		if !ok {
			continue
		}
		field := AuditField{Name: a.text("name", true), Source: a.text("source", true), Redact: a.flag("redact"), Description: a.text("description", false)}
		variable, inPath := strings.CutPrefix(field.Source, "path.")
		inner, inBody := strings.CutPrefix(field.Source, "response.body.")
		switch {
		case !isName(field.Name, "._:-") || field.Name == "request_id" || field.Name == "clock":
			n.f.add(a.path+".name", "%q is not a free name of letters, digits, dots, dashes, underscores and colons", field.Name)
		case seen[field.Name]:
			n.f.add(a.path+".name", "%q is there twice", field.Name)
		case inPath && !op.Path.Has(variable):
			n.f.add(a.path+".source", "the path has no variable %q", variable)
		case inBody && (inner == "" || strings.ContainsAny(inner, "@|{}[]()!~<>=%`\"\\")):
			n.f.add(a.path+".source", "%q is not a plain gjson path", inner)
		case !inPath && !inBody:
			n.f.add(a.path+".source", "%q is neither path.NAME nor response.body.PATH", field.Source)
		}
		seen[field.Name] = true
		op.Audit = append(op.Audit, field)
	}
}

func (op *Operation) readCredential(n node) {
	raw, has := n.o["credential"]
	if !has {
		return
	}
	in := &Injection{In: "header"}
	path := n.path + ".credential"
	switch v := raw.(type) {
	case string:
		in.Kind = v
	case object:
		c, _ := n.f.open(v, path, "kind", "scope", "inject")
		in.Kind, in.Scope = c.text("kind", true), c.text("scope", false)
		if inject, has := c.o["inject"]; has {
			if i, ok := n.f.open(inject, path+".inject", "in", "name", "format"); ok {
				in.In, in.Name, in.Format = first(i.text("in", false), "header"), i.text("name", false), i.text("format", false)
			}
		}
	default:
		n.f.add(path, "it is neither a kind nor an object")
		return
	}
	if !slices.Contains(kinds, in.Kind) {
		n.f.add(path, "the kind %q is not one of %s", in.Kind, strings.Join(kinds, ", "))
	}
	in.setDefaults()
	op.Injection = in
	op.checkInjection(n, path)
}

func (in *Injection) setDefaults() {
	switch {
	case in.In == "header" && in.Name == "":
		in.Name = "Authorization"
		if in.Format == "" {
			in.Format = "Bearer {secret}"
			if in.Kind == "basic" {
				in.Format = "Basic {secret}"
			}
		}
	case in.Format == "" && in.Kind == "basic" && strings.EqualFold(in.Name, "Authorization"):
		in.Format = "Basic {secret}"
	case in.Format == "" && strings.EqualFold(in.Name, "Authorization"):
		in.Format = "Bearer {secret}"
	case in.Format == "":
		in.Format = "{secret}"
	}
}

// hopFields are header names that a credential may not stand in: they belong
// to the connection, the framing or the routing.
var hopFields = []string{"host", "connection", "content-length", "transfer-encoding", "te", "trailer", "upgrade", "keep-alive",
	"proxy-authorization", "proxy-connection", "expect", "range", "accept-encoding", "content-type", "via", "forwarded"}

func (op *Operation) checkInjection(n node, path string) {
	in := op.Injection
	bad := func(format string, args ...any) { n.f.add(path+".inject", format, args...) }
	switch in.In {
	case "header":
		if !isHeaderName(in.Name) || slices.Contains(hopFields, strings.ToLower(in.Name)) {
			bad("%q is not a header field that a credential may stand in", in.Name)
		}
	case "query":
		if !isName(in.Name, "._-") {
			bad("%q is not a plain query name", in.Name)
		}
	case "path":
		if !op.Path.Has(in.Name) {
			bad("the path has no variable %q", in.Name)
		}
	default:
		bad("\"in\" is %q; it must be header, query or path", in.In)
	}
	if strings.Count(in.Format, "{secret}") != 1 || len(in.Format) > 256 || !isASCII(in.Format) {
		bad("the format %q does not hold {secret} once, in plain ASCII", in.Format)
	}
	if op.Method == "" || op.Path.IsZero() {
		n.f.add(path, "an operation with a credential declares a method and a path")
	}
	for i, h := range op.Hosts {
		if h.Port == 80 {
			n.f.add(n.item("hosts", i), "port 80 is in clear, and this operation has a credential")
		}
		if h.Wildcard && !n.flag("wildcard_credential") {
			n.f.add(n.item("hosts", i), "a wildcard host gets a credential only with \"wildcard_credential\": true")
		}
	}
}

func isHeaderName(s string) bool { return isName(s, "-") && len(s) <= 64 }

func isASCII(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
