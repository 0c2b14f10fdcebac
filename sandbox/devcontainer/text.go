package devcontainer

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/ALRubinger/aileron/internal/termsafe"
)

// Text returns the plan as lines of a name and a value.
func (p *Plan) Text() string {
	var s strings.Builder
	line := func(name, value string) {
		if value != "" { // what a project names does not become a line of its own
			fmt.Fprintf(&s, "%s: %s\n", name, termsafe.Line(value))
		}
	}
	line("tier", p.Tier)
	line("file", p.File)
	line("image", p.Image)
	if b := p.Build; b != nil {
		line("dockerfile", b.Dockerfile)
		line("context", Word(b.Context)+", of which it copies "+cmp.Or(words(b.Reads), "nothing"))
		line("target", b.Target)
		for _, arg := range b.Args {
			line("argument", arg.Name+"="+arg.Value)
		}
	}
	for _, f := range p.Features {
		line("feature", f.text())
	}
	line("user", cmp.Or(p.User, "the image's"))
	line("workspace", p.Workspace.Folder)
	if p.Workspace.Source != "" {
		line("mount", "bind "+Word(p.Workspace.Source)+" at "+Word(p.Workspace.Mount))
	}
	for _, v := range p.Env {
		line("variable", v.Name+"="+v.Value)
	}
	line("unset", words(p.Unset))
	for _, m := range p.Mounts {
		text := fmt.Sprintf("%s %s at %s", m.Type, Word(m.Source), Word(m.Target))
		if m.ReadOnly {
			text += ", read-only"
		}
		line("mount", text)
	}
	for _, port := range p.Ports {
		line("port", fmt.Sprint(port))
	}
	line("egress", p.Egress)
	line("connectors", words(p.Connectors))
	line("packages", words(p.Packages))
	if p.OnHost != nil {
		p.OnHost.text(line)
	}
	for _, c := range p.Commands {
		c.text(line)
	}
	for _, n := range p.Warnings {
		line("warning", n.String())
	}
	for _, n := range p.Refusals {
		line("refused", n.String()+"; "+n.Hint)
	}
	return s.String()
}

// text returns what a feature is, and what it gets.
func (f Feature) text() string {
	if f.Digest == "" {
		return Word(f.Ref) + ", which is not fetched yet: what it asks for is not known"
	}
	text := Word(f.Ref) + " " + Word(cmp.Or(f.Version, "without a version")) + ", " + cmp.Or(f.Manifest, f.Digest)
	for _, v := range f.Options {
		text += " " + v.Name + "=" + Word(v.Value)
	}
	return text
}

// Word returns a name as it stands in a line: in quotes, unless it is one plain word, so that no name of a project
// looks like what the line has besides.
func Word(name string) string {
	if plainWord().MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

var plainWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[\pL\pN_./:@%+=~${}*?\[\]-]+$`)
})

// words returns names as a list.
func words(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = Word(name)
	}
	return strings.Join(all, " ")
}

func (c Command) text(line func(name, value string)) {
	for _, part := range c.Parts {
		text := part.Shell
		if part.Args != nil {
			text = fmt.Sprintf("%q", part.Args)
		}
		if part.Name != "" {
			text = Word(part.Name) + ": " + text
		}
		line(c.Title(), text)
	}
}
