package devcontainer

import (
	"cmp"
	"fmt"
	"strings"

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
		line("context", b.Context+", of which it copies "+cmp.Or(strings.Join(b.Reads, " "), "nothing"))
		line("target", b.Target)
		for _, arg := range b.Args {
			line("argument", arg.Name+"="+arg.Value)
		}
	}
	line("user", cmp.Or(p.User, "the image's"))
	line("workspace", p.Workspace.Folder)
	if p.Workspace.Source != "" {
		line("mount", "bind "+p.Workspace.Source+" at "+p.Workspace.Mount)
	}
	for _, v := range p.Env {
		line("variable", v.Name+"="+v.Value)
	}
	line("unset", strings.Join(p.Unset, " "))
	for _, m := range p.Mounts {
		text := fmt.Sprintf("%s %s at %s", m.Type, m.Source, m.Target)
		if m.ReadOnly {
			text += ", read-only"
		}
		line("mount", text)
	}
	for _, port := range p.Ports {
		line("port", fmt.Sprint(port))
	}
	line("egress", p.Egress)
	line("connectors", strings.Join(p.Connectors, " "))
	line("packages", strings.Join(p.Packages, " "))
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

func (c Command) text(line func(name, value string)) {
	for _, part := range c.Parts {
		text := part.Shell
		if part.Args != nil {
			text = fmt.Sprintf("%q", part.Args)
		}
		if part.Name != "" {
			text = part.Name + ": " + text
		}
		line(c.Phase, text)
	}
}
