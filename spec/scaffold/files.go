package scaffold

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/ALRubinger/aileron/spec/logins"

	"github.com/ALRubinger/aileron/spec"
)

// The names of the files that are for the author.
const (
	readmeFile = "README.md"
	ignoreFile = ".gitignore"
)

const ignored = `# What a release is made of is built from the two files, and its key stays with you.
aileron.tar.gz
aileron.tar.gz.*
*.key
`

// SchemaURL returns where the JSON Schema of a file is published: "manifest" or
// "aileron.connector.v1".
func SchemaURL(name string) string {
	return "https://raw.githubusercontent.com/ALRubinger/aileron/main/docs/schema/" + name + ".schema.json"
}

// manifest returns manifest.toml, with comments for its author.
func (c *Connector) manifest() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "#:schema %s\n", SchemaURL("manifest"))
	if c.Source != "" {
		fmt.Fprintf(&b, "# Made from %s. Review what it grants before you publish it.\n", c.Source)
	}
	fmt.Fprintf(&b, `
# What this connector asks of the person who installs it. An unknown key is an error.
[connector]
# Who publishes it, and where: github://OWNER/REPOSITORY, with the directory in it, if any.
name = %s
# Semantic Versioning, the same as in %s. The tag of the release is %s.
version = %s

[capabilities.network]
# Every host of every operation, with its port.%s
hosts = [%s]
`, quote(string(c.FQN)), spec.SpecFile, c.Tag(), quote(c.version()), hostsNote(c.Credential), tomlList(c.Hosts()))
	if c.Credential != nil {
		fmt.Fprintf(&b, `
[capabilities.credential]
# bearer, api_key, basic or oauth2. The secret itself is bound by the user, and is never in a connector.
kind = %s
# What the secret must be allowed to do, for the person who creates it.
scope = %s
`, quote(string(c.Credential.Kind)), quote(c.Credential.Scope))
		b.WriteString(loginTable(c.Credential.Login))
	}
	fmt.Fprintf(&b, "\n[provides]\n# What it is good for, in words of your own.\nintents = [%s]\n",
		quote("use_"+intent(c.Tool)))
	return b.Bytes()
}

// hostsNote returns the end of the comment on the hosts.
func hostsNote(need *Need) string {
	if need == nil || need.Login == nil {
		return ""
	}
	return " And that of the token_url."
}

// loginTable returns the table [capabilities.credential.oauth2], with comments for its author; "" if there is none.
func loginTable(o *spec.OAuth2) string {
	if o == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n# How the token is obtained: the URLs and scopes of the service.\n[capabilities.credential.oauth2]\n")
	if o.Grant != logins.GrantCode {
		fmt.Fprintf(&b, "grant = %s\n", quote(o.Grant))
	}
	for _, u := range []struct{ key, value string }{{"authorize_url", o.AuthorizeURL},
		{"device_authorization_url", o.DeviceURL}, {"token_url", o.TokenURL}} {
		if u.value != "" {
			fmt.Fprintf(&b, "%s = %s\n", u.key, quote(u.value))
		}
	}
	if o.Grant != logins.GrantClient {
		b.WriteString("# The client that you registered with the service for this connector, with the redirect URI\n" +
			"# http://localhost/callback on any port. Without it, each user brings one.\n# client_id = \"...\"\n")
	}
	if len(o.Scopes) > 0 {
		fmt.Fprintf(&b, "scopes = [%s]\n", tomlList(o.Scopes))
	}
	return b.String()
}

// tomlList returns strings as the inside of a TOML array, a line each if there are several.
func tomlList(list []string) string {
	var all []string
	for _, h := range list {
		all = append(all, quote(h))
	}
	if len(all) <= 1 {
		return strings.Join(all, "")
	}
	return "\n  " + strings.Join(all, ",\n  ") + ",\n"
}

// quote returns a TOML basic string, which JSON's are except for an escaped slash.
func quote(s string) string {
	text, err := encode(s)
	if err != nil {
		return `""` // a string can be encoded
	}
	return string(text)
}

// intent returns a tool's name as a word of an intent.
func intent(tool string) string {
	return strings.NewReplacer("-", "_", ".", "_", ":", "_").Replace(tool)
}

// file is aileron.connector.v1.json.
type file struct {
	Schema    string   `json:"schema_version"`
	Connector identity `json:"connector"`
	Tools     []tool   `json:"tools"`
}

type identity struct {
	FQN     spec.FQN `json:"fqn"`
	Version string   `json:"version"`
}

type tool struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Operations  []Operation `json:"operations"`
}

// spec returns aileron.connector.v1.json.
func (c *Connector) spec() ([]byte, error) {
	text, err := c.compact()
	if err != nil {
		return nil, err
	}
	return layout(text), nil
}

// compact returns aileron.connector.v1.json on one line.
func (c *Connector) compact() ([]byte, error) {
	text, err := encode(file{spec.Schema, identity{c.FQN, c.version()}, []tool{{c.Tool, c.About, c.Operations}}})
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", spec.SpecFile, err)
	}
	return text, nil
}

// encode returns v as JSON on one line that is not escaped for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Tag returns the name of the tag of the release: v1.2.0, or DIR/v1.2.0 for a
// connector in a directory of a repository.
func (c *Connector) Tag() string {
	_, rest, _ := strings.Cut(string(c.FQN), "://")
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) < 3 {
		return "v" + c.version()
	}
	return path.Join(parts[2], "v"+c.version())
}

// readme returns README.md.
func (c *Connector) readme() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s, for [aileron](https://github.com/ALRubinger/aileron).\n\n", c.Tool, c.About)
	fmt.Fprintf(&b, "```sh\naileron connector install %s@%s\n", c.FQN, c.version())
	if c.Credential != nil {
		fmt.Fprintf(&b, "aileron binding setup %s\n", c.FQN)
	}
	b.WriteString("```\n\n")
	if c.Credential != nil {
		fmt.Fprintf(&b, "It needs a credential of kind `%s`: %s.\n\n", c.Credential.Kind, c.Credential.Scope)
	}
	fmt.Fprintf(&b, strings.ReplaceAll(releaseSteps, "~", "`"), spec.ManifestFile, spec.SpecFile, c.Tag())
	return b.Bytes()
}

// releaseSteps are the steps of a release, with ~ for `.
const releaseSteps = `## Publish a release

1. Raise the version, here and in ~%s~ and ~%s~. Without a word, ~bump~ names what is due:

   ~~~sh
   aileron connector bump
   aileron connector bump minor
   ~~~

2. Check it, and try every operation against a stub:

   ~~~sh
   aileron connector check .
   aileron connector test .
   ~~~

3. Commit it, and release it. ~aileron connector keygen~ makes the key, once; keep it out of the repository.

   ~~~sh
   aileron connector release . --sign publisher.key
   ~~~

   It packs and signs ~aileron.tar.gz~, tags the commit as ~%s~, and prints the commands that publish both.

A published version does not change: users' hashes name its bytes. For any change, publish the next version.
`

// widest is the width in bytes up to which a JSON value stands on one line.
const widest = 110

// layout returns JSON with each object and array on one line where it fits, and
// otherwise an entry per line: a person edits the file.
func layout(compact []byte) []byte {
	var b bytes.Buffer
	l := &layouter{dec: json.NewDecoder(bytes.NewReader(compact))}
	l.dec.UseNumber()
	l.value().write(&b, 0, 0)
	b.WriteByte('\n')
	return b.Bytes()
}

// piece is a JSON value in parts.
type piece struct {
	open, shut string
	keys       []string // of an object, as JSON
	items      []piece
	width      int // on one line
}

// layouter reads compact JSON that encoding/json has written.
type layouter struct{ dec *json.Decoder }

func (l *layouter) value() piece {
	token, err := l.dec.Token()
	if err != nil {
		return piece{}
	}
	delim, ok := token.(json.Delim)
	if !ok {
		text := scalar(token)
		return piece{open: text, width: len(text)}
	}
	p := piece{open: delim.String(), shut: string(delim + 2), width: 2} // [ and ], { and } are two apart
	for l.dec.More() {
		if delim == '{' {
			key, err := l.dec.Token()
			if err != nil {
				return piece{}
			}
			p.keys = append(p.keys, scalar(key)+": ")
			p.width += len(p.keys[len(p.keys)-1])
		}
		item := l.value()
		p.items = append(p.items, item)
		p.width += item.width + len(", ")
	}
	_, _ = l.dec.Token()
	return p
}

// scalar returns a string, number or literal as JSON.
func scalar(v any) string {
	text, err := encode(v)
	if err != nil {
		return "null"
	}
	return string(text)
}

// write writes the value, which begins at a column.
func (p piece) write(b *bytes.Buffer, depth, column int) {
	b.WriteString(p.open)
	oneLine := column+p.width <= widest
	for i, item := range p.items {
		switch {
		case !oneLine:
			b.WriteString("\n" + strings.Repeat("  ", depth+1))
		case i > 0:
			b.WriteByte(' ')
		}
		at := 2 * (depth + 1)
		if p.keys != nil {
			b.WriteString(p.keys[i])
			at += len(p.keys[i])
		}
		if oneLine {
			at = 0
		}
		item.write(b, depth+1, at)
		if i < len(p.items)-1 {
			b.WriteByte(',')
		}
	}
	if !oneLine && p.shut != "" {
		b.WriteString("\n" + strings.Repeat("  ", depth))
	}
	b.WriteString(p.shut)
}
