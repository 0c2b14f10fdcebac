package agents

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Registration is how an agent that runs on this host is told of an MCP server: by arguments or a variable, so that no
// file of the user's is changed and none has to be restored. In a value "{program}" stands for the server's program as
// a string of JSON, which one of TOML is too, and "{words}" for it as a word of a command line. The server is called
// aileron, is "{program} mcp", and gets the environment of the agent. The zero value: there is no way but a file, which
// stays the user's.
type Registration struct {
	// Args precede the user's arguments.
	Args []string

	// Behind are subcommands behind whose name Args stand. Where there are any, no other subcommand takes them, and
	// without arguments the first of them is meant.
	Behind []string

	// Except are subcommands that do not take Args.
	Except []string

	// File is the text of a file for which [FilePlace] stands in Args; "" is none. It is the session's, and no secret.
	File string

	// Variable is one whose value is a JSON object of the agent's configuration, and Config is that object. Where the
	// variable has one, which may have comments, the two are merged.
	Variable, Config string
}

// FilePlace is the argument in whose place the path of a Registration's file is to be.
const FilePlace = "{file}"

// FileFor returns the text of the file, "" for none.
func (r Registration) FileFor(program string) string {
	return strings.ReplaceAll(r.File, "{program}", quote(program))
}

// Register returns the user's arguments with those of r, and the variable to set; "" is none. now returns the value
// that a variable has. It reports false if the agent cannot be told of the server: it has no way to be, the arguments
// are of a subcommand that has none, or the variable has a value that is no object of JSON.
func (r Registration) Register(program string, args []string, now func(string) string) (
	with []string, env string, ok bool) {
	fill := func(s string) string {
		return strings.NewReplacer("{program}", quote(program), "{words}", word(program)).Replace(s)
	}
	if r.Variable != "" {
		config, ok := merge(now(r.Variable), fill(r.Config))
		return args, r.Variable + "=" + config, ok
	}
	if len(args) > 0 && slices.Contains(r.Except, args[0]) {
		return args, "", false
	}
	at := 0
	if len(r.Behind) > 0 {
		if len(args) == 0 {
			args = r.Behind[:1]
		}
		if at = 1; !slices.Contains(r.Behind, args[0]) {
			return args, "", false
		}
	}
	with = slices.Clone(args)
	for i, a := range r.Args {
		with = slices.Insert(with, at+i, fill(a))
	}
	return with, "", len(r.Args) > 0
}

// plain is a word that needs no quotes, whatever splits the line.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./+-]+$`)

// word returns a word of a command line. Quotes are for programs that know them: others take a plain word alone.
func word(s string) string {
	if plain.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// quote returns a string of JSON.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // strings encode
	return strings.TrimSuffix(b.String(), "\n")
}

// merge returns the object a with the members of b, at every depth; b wins. "" is an empty object.
func merge(a, b string) (string, bool) {
	if strings.TrimSpace(a) == "" {
		return b, true
	}
	var into, from map[string]any
	plain, err := hujson.Standardize([]byte(a + "\n")) // opencode takes comments, and a comma behind the last entry
	if err != nil || !read(string(plain), &into) || into == nil || !read(b, &from) {
		return a, false
	}
	mergeObject(into, from)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err = e.Encode(into)
	return strings.TrimSuffix(out.String(), "\n"), err == nil
}

// read reads JSON, and keeps the digits of its numbers.
func read(text string, into any) bool {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d.Decode(into) == nil && !d.More()
}

// mergeObject adds the members of from to into.
func mergeObject(into, from map[string]any) {
	for k, v := range from {
		a, isA := into[k].(map[string]any)
		b, isB := v.(map[string]any)
		if isA && isB {
			mergeObject(a, b)
		} else {
			into[k] = v
		}
	}
}
