package spec

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/spec/body"
	"github.com/ALRubinger/aileron/spec/internal/plain"
	"github.com/ALRubinger/aileron/spec/internal/strictjson"
	"github.com/ALRubinger/aileron/spec/schema"
)

// Invocation is a request by name: an operation and its arguments.
type Invocation struct {
	Connector, Tool, Operation string
	args                       map[string]any
	uploads                    []body.Upload // files whose content follows the call
	salt                       []byte        // see [body.JoinStreamed]
}

// ParseInvocation reads an invocation, a JSON object with the keys connector_fqn, tool, operation and args, as strictly
// as a specification: UTF-8, at most [MaxSize] bytes, no unknown or repeated key, nothing that is no JSON, such as NaN.
// Without args there are none. The error is about the first mistake, and has no value of an argument.
func ParseInvocation(data []byte) (Invocation, error) { return parseInvocation(data, nil) }

// ParseUpload reads an invocation that the content of files follows: the key files has a list of objects with input,
// size, and filename and content_type, of which neither is needed. salt is for [body.JoinStreamed].
func ParseUpload(data, salt []byte) (Invocation, error) { return parseInvocation(data, salt) }

// parseInvocation reads an invocation, with files if there is a salt.
func parseInvocation(data, salt []byte) (Invocation, error) {
	var d diagnostics
	v, ok := readJSON(data, strictjson.Bounds{Size: MaxSize, Depth: maxDepth}, &d)
	if !ok || len(d.list) > 0 {
		return Invocation{}, firstOf(&d)
	}
	keys := []string{"connector_fqn", "tool", "operation", "args", "files"}
	if salt == nil {
		keys = keys[:4]
	}
	n, _ := d.open(v, "", keys...)
	in := Invocation{
		Connector: n.text("connector_fqn", true), Tool: n.text("tool", true), Operation: n.text("operation", true),
		args: map[string]any{}, salt: salt,
	}
	if salt != nil {
		in.uploads = n.uploads("files")
	}
	if args, has := n.o.Get("args"); has {
		if o, ok := args.(strictjson.Object); ok {
			in.args = o.Plain()
		} else {
			d.add("args", "it is not an object")
		}
	}
	if len(d.list) > 0 {
		return Invocation{}, firstOf(&d)
	}
	return in, nil
}

// uploads returns the files of a list.
func (n node) uploads(key string) (all []body.Upload) {
	v, _ := n.o.Get(key)
	list, ok := v.([]any)
	if !ok || len(list) == 0 || len(list) > body.MaxUploads {
		n.diags.add(n.at(key), "it is not a list of 1 to %d files", body.MaxUploads)
		return nil
	}
	for i, item := range list {
		f, ok := n.diags.open(item, n.item(key, i), "input", "filename", "content_type", "size")
		if !ok {
			continue
		}
		u := body.Upload{Input: f.text("input", true), Name: f.raw("filename", false), Type: f.raw("content_type", false),
			Size: -1}
		size, _ := f.o.Get("size")
		if number, ok := size.(json.Number); ok {
			if bytes, err := number.Int64(); err == nil {
				u.Size = bytes
			}
		}
		if m := u.Check(); m != nil {
			n.diags.add(n.item(key, i)+m.Place, "%s", m.Text)
		}
		all = append(all, u)
	}
	return all
}

// Texts takes from the files that follow the call those that are texts of op, whose arguments are their contents: see
// [Invocation.SetText]. They stand in front of all others, which are read while the request is sent, and have at most
// [MaxSize] bytes in all.
func (in *Invocation) Texts(op *Operation) (texts []body.Upload, err error) {
	files, size := []body.Upload(nil), int64(0)
	for _, f := range in.uploads {
		_, given := in.args[f.Input]
		given = given || slices.ContainsFunc(texts, func(u body.Upload) bool { return u.Input == f.Input })
		isText := func(i Input) bool { return i.Name == f.Input && i.Type == "string" && !op.isCredential(i.Name) }
		switch size += f.Size; {
		case !slices.ContainsFunc(op.Arguments(), isText):
			files, size = append(files, f), size-f.Size
		case given:
			return nil, fmt.Errorf("args.%s: it is given twice", f.Input)
		case len(files) > 0:
			return nil, fmt.Errorf("files: the text %s follows a file: name it in front of that", f.Input)
		case size > MaxSize:
			return nil, fmt.Errorf("files: the texts have more than %d bytes", MaxSize)
		default:
			texts = append(texts, f)
		}
	}
	in.uploads = files
	return texts, nil
}

// SetText makes the content of a file an argument.
func (in *Invocation) SetText(name string, content []byte) error {
	if !utf8.Valid(content) {
		return fmt.Errorf("args.%s: the file is no text in UTF-8", name)
	}
	in.args[name] = string(content)
	return nil
}

// HasFiles reports whether files follow the call.
func (in *Invocation) HasFiles() bool { return len(in.uploads) > 0 }

// maxMistake bounds the text about a mistake in an invocation, which may repeat names of its sender.
const maxMistake = 300

// firstOf returns the first mistake as one short text.
func firstOf(d *diagnostics) error {
	text := d.list[0].Error()
	if len(text) > maxMistake {
		text = strings.ToValidUTF8(text[:maxMistake], "") + "…"
	}
	return errors.New(text)
}

// Call is the request that an invocation makes of its operation. Whether it is allowed, [Index.Match] decides as for
// any other.
type Call struct {
	Target      Target
	Body        []byte // nil: the request has none, or Streamed is it
	ContentType string // of the body
	Streamed    *body.Streamed
}

// Callable returns an error unless the operation can be called by name: it then declares one request up to its
// arguments.
func (op *Operation) Callable() error {
	switch {
	case !slices.ContainsFunc(op.Hosts, isSingleHost):
		return errors.New("the operation names no single host; send its request with an HTTP client")
	case op.Method == "" || op.Method == "*":
		return errors.New("the operation names no single method; send its request with an HTTP client")
	case op.Path.IsZero():
		return errors.New("the operation names no path; send its request with an HTTP client")
	case op.MCP != nil:
		return errors.New("the operation is a server of MCP; use a client of MCP with its URL")
	}
	return nil
}

func isSingleHost(h HostPattern) bool { return !h.Wildcard }

// Arguments returns what [Operation.Call] takes: the inputs, and the variables of the path that are none of them. The
// credential is not among them.
func (op *Operation) Arguments() []Input {
	var all []Input
	for _, in := range op.Inputs {
		if !op.isCredential(in.Name) {
			in.Required = in.Required || in.In == InPath
			all = append(all, in)
		}
	}
	for _, s := range op.Path.Segments() {
		if s.Name != "" && op.placeOfInput(s.Name) == "" && !op.isCredential(s.Name) {
			all = append(all, Input{Name: s.Name, Type: "string", In: InPath, Required: true})
		}
	}
	return all
}

// maxTarget bounds the path and the query of a call.
const maxTarget = 32 << 10

// Call returns the request that the arguments of an invocation make of op. Each argument is declared as an input, or is
// a variable of the path; it has the type that is declared, and is a single value that stands in its place in one
// spelling. The error is about the first mistake, and has no value of an argument.
func (op *Operation) Call(in Invocation) (Call, error) {
	c := Call{Target: Target{Method: op.Method}}
	if err := op.Callable(); err != nil {
		return c, err
	}
	at := slices.IndexFunc(op.Hosts, isSingleHost)
	c.Target.Host, c.Target.Port, c.Target.Scheme = op.Hosts[at].Name, op.Hosts[at].Port, "https"
	if c.Target.Port == 80 {
		c.Target.Scheme = "http"
	}
	var d diagnostics
	a := arguments{op: op, diags: &d, values: in.args, salt: in.salt}
	a.upload(in.uploads)
	a.check()
	c.Target.Path, c.Target.Query = a.path(), a.query()
	c.Body, c.ContentType = a.body()
	c.Streamed = a.streamed
	if len(d.list) == 0 && len(c.Target.Path)+len(c.Target.Query) > maxTarget {
		d.add("args", "they make a path and a query of more than %d bytes", maxTarget)
	}
	if len(d.list) > 0 {
		return Call{}, firstOf(&d)
	}
	return c, nil
}

// ActionCall is a request by name of an action, which calls operations.
type ActionCall struct {
	Action string
	Args   map[string]any // string, json.Number, bool, nil, []any or map[string]any
}

// ParseActionCall reads the call of an action, a JSON object with the keys action and args, as [ParseInvocation] reads
// an invocation.
func ParseActionCall(data []byte) (ActionCall, error) {
	var d diagnostics
	v, ok := readJSON(data, strictjson.Bounds{Size: MaxSize, Depth: maxDepth}, &d)
	if !ok || len(d.list) > 0 {
		return ActionCall{}, firstOf(&d)
	}
	n, _ := d.open(v, "", "action", "args")
	call := ActionCall{Action: n.text("action", true), Args: map[string]any{}}
	if args, has := n.o.Get("args"); has {
		if o, ok := args.(strictjson.Object); ok {
			call.Args = o.Plain()
		} else {
			d.add("args", "it is not an object")
		}
	}
	if len(d.list) > 0 {
		return ActionCall{}, firstOf(&d)
	}
	return call, nil
}

// NewInvocation returns the invocation of an operation with arguments that a program has composed: strings, booleans,
// int64, float64 and json.Number, nil, and lists and maps of these. Any other value is an error, and so is what JSON
// cannot say.
func NewInvocation(connector, tool, operation string, args map[string]any) (Invocation, error) {
	v, err := argument(args, 0)
	if err != nil {
		return Invocation{}, err
	}
	return Invocation{Connector: connector, Tool: tool, Operation: operation, args: v.(map[string]any)}, nil
}

// argument returns a value as [ParseInvocation] would have read it.
func argument(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("args: nested more than %d deep", maxDepth)
	}
	switch t := v.(type) {
	case nil, bool:
		return t, nil
	case string:
		if !utf8.ValidString(t) {
			return nil, errors.New("args: a text is not UTF-8")
		}
		return t, nil
	case json.Number, int64, int, float64:
		number, err := json.Marshal(t)
		if err != nil {
			return nil, errors.New("args: a number is none of JSON")
		}
		return json.Number(number), nil
	case []any:
		list := make([]any, len(t))
		var err error
		for i := range t {
			if list[i], err = argument(t[i], depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		o := make(map[string]any, len(t))
		var err error
		for k := range t {
			if o[k], err = argument(t[k], depth+1); err != nil {
				return nil, err
			}
		}
		return o, nil
	}
	return nil, fmt.Errorf("args: a value of type %T stands for none of JSON", v)
}

// Request is a request that names the operation that it claims to be. Nothing in it has been checked: its parts may
// hold what no request may.
type Request struct {
	Connector, Tool, Operation string
	Method, URL                string
	Fields                     [][2]string // names and values, by name
	Body                       []byte
}

// ParseRequest reads a request, a JSON object with the keys connector_fqn, tool, operation, method, upstream_url,
// headers and body_base64, as [ParseInvocation] reads an invocation. A header's value is a string, or a list of them
// for a field that stands more than once.
func ParseRequest(data []byte) (Request, error) {
	var d diagnostics
	v, ok := readJSON(data, strictjson.Bounds{Size: MaxSize, Depth: maxDepth}, &d)
	if !ok || len(d.list) > 0 {
		return Request{}, firstOf(&d)
	}
	n, _ := d.open(v, "", "connector_fqn", "tool", "operation", "method", "upstream_url", "headers", "body_base64")
	r := Request{
		Connector: n.text("connector_fqn", true), Tool: n.text("tool", true), Operation: n.text("operation", true),
		Method: n.raw("method", true), URL: n.raw("upstream_url", true), Fields: n.fields("headers"),
	}
	encoded := n.raw("body_base64", false)
	var err error
	r.Body, err = base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		d.add("body_base64", "it is not base64")
	}
	if len(d.list) > 0 {
		return Request{}, firstOf(&d)
	}
	return r, nil
}

// raw returns a text as it is.
func (n node) raw(key string, required bool) string {
	v, has := n.o.Get(key)
	s, ok := v.(string)
	switch {
	case !has && required:
		n.diags.add(n.at(key), "it is missing")
	case has && !ok:
		n.diags.add(n.at(key), "it is not a string")
	}
	return s
}

// fields returns the header fields of an object, by name.
func (n node) fields(key string) (list [][2]string) {
	v, has := n.o.Get(key)
	o, ok := v.(strictjson.Object)
	if has && !ok {
		n.diags.add(n.at(key), "it is not an object")
	}
	o = slices.SortedFunc(slices.Values(o), func(a, b strictjson.Field) int { return strings.Compare(a.Key, b.Key) })
	for _, f := range o {
		name := f.Key
		values, isList := f.Value.([]any)
		if !isList {
			values = []any{f.Value}
		}
		for _, v := range values {
			value, ok := v.(string)
			if !ok {
				n.diags.add(strictjson.Join(n.at(key), name), "it is neither a string nor a list of strings")
			}
			list = append(list, [2]string{name, value})
		}
	}
	return list
}

// ReadObject reads a JSON object as strictly as an invocation: UTF-8, at most [MaxSize] bytes, no key but those named,
// if any are, and none twice, and nothing that is no JSON, such as NaN. A number is a [json.Number]. The error is about
// the first mistake, and has no value of the object.
func ReadObject(data []byte, keys ...string) (map[string]any, error) {
	var d diagnostics
	v, ok := readJSON(data, strictjson.Bounds{Size: MaxSize, Depth: maxDepth}, &d)
	if !ok || len(d.list) > 0 {
		return nil, firstOf(&d)
	}
	o, ok := v.(strictjson.Object)
	switch {
	case !ok:
		d.add("", "it is not an object")
	case len(keys) > 0:
		d.open(v, "", keys...)
	}
	if len(d.list) > 0 {
		return nil, firstOf(&d)
	}
	return o.Plain(), nil
}

// Scalar returns the text of a string, number or boolean of JSON.
func Scalar(v any) (text string, ok bool) { return body.Scalar(v) }

// CheckInputs checks arguments against inputs without a place in a request: the names, the types, the values, and that
// none is missing. The error is about the first mistake, and has no value of an argument.
func CheckInputs(inputs []Input, args map[string]any) error {
	var d diagnostics
	var unknown []string
	for name := range args {
		if !slices.ContainsFunc(inputs, func(in Input) bool { return in.Name == name }) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		d.add(strictjson.Join("args", name), "there is no such input")
	}
	for i := range inputs {
		in := &inputs[i]
		v, has := args[in.Name]
		text, _ := body.Scalar(v)
		switch {
		case !has && in.Required:
			d.add(strictjson.Join("args", in.Name), "it is missing")
		case !has:
		case v == nil:
			d.add(strictjson.Join("args", in.Name), "it is null")
		case !in.hasType(v):
			d.add(strictjson.Join("args", in.Name), "it is not %s", in.wants())
		case len(in.Values) > 0 && !slices.Contains(in.Values, text):
			d.add(strictjson.Join("args", in.Name), "it is not one of %s", strings.Join(in.Values, ", "))
		}
	}
	if len(d.list) > 0 {
		return firstOf(&d)
	}
	return nil
}

// InputTypes returns the types that an input may have.
func InputTypes() []string {
	return slices.Clone(schema.Types)
}

// IsLine reports whether s is text that can be printed as part of a line: it has no control character, no line break,
// and no character that is invisible or turns the text.
func IsLine(s string) bool { return !plain.HasControl(s) }

// IsInputName reports whether s can be the name of an input.
func IsInputName(s string) bool { return plain.IsName(strings.TrimLeft(s, "_"), "._:-") }

// IsOperationName reports whether s can be the name of an operation.
func IsOperationName(s string) bool { return plain.IsName(s, "._:-") }

// IsVersion reports whether s is strict SemVer 2.0.0 without a leading v.
func IsVersion(s string) bool { return isVersion(s) }

// IsDigest reports whether s is "sha256:" and 64 hexadecimal digits.
func IsDigest(s string) bool { return isDigest(s) }

// CheckCommandName returns an error if a command in a sandbox cannot have that name.
func CheckCommandName(s string) error {
	if why := badToolName(s); why != "" {
		return errors.New(quote(s) + " " + why)
	}
	return nil
}
