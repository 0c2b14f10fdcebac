package devcontainer

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// volumeName is what engines take as the name of a volume.
var volumeName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$`)
})

// fieldsOf returns the fields of a mount: key=value, separated by commas. A key without a value is "true".
func fieldsOf(text string) map[string]string {
	fields := map[string]string{}
	for field := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(field, "=")
		if !ok {
			value = "true"
		}
		switch key = strings.TrimSpace(key); key {
		case "src":
			key = "source"
		case "dst", "destination":
			key = "target"
		case "ro":
			key = "readonly"
		}
		fields[key] = value
	}
	return fields
}

// useMounts puts mounts in force.
func (c *composer) useMounts(name string, value any) {
	list, ok := value.([]any)
	if !ok {
		c.mistyped(name, "a list of mounts")
		return
	}
	targets := map[string]bool{}
	for i, item := range list {
		property := fmt.Sprintf("%s[%d]", name, i)
		c.doc.lines[property] = c.line(name)
		m, ok := c.mount(property, item)
		if !ok {
			continue
		}
		if targets[m.Target] {
			c.refuse(property, "another mount has the place "+m.Target, "remove one of them")
			continue
		}
		targets[m.Target] = true
		// One of a feature before; the last one counts, as with the reference implementation.
		c.plan.Mounts = slices.DeleteFunc(c.plan.Mounts, func(other Mount) bool {
			if other.Target == m.Target {
				c.warn(property, "it takes the place of a feature's mount at "+m.Target)
			}
			return other.Target == m.Target
		})
		c.plan.Mounts = append(c.plan.Mounts, m)
	}
}

// mount reads a mount, a string as docker run --mount takes it or an object of its fields.
func (c *composer) mount(property string, value any) (Mount, bool) {
	fields := map[string]string{}
	switch v := value.(type) {
	case string:
		fields = fieldsOf(v)
	case map[string]any:
		for key, field := range v {
			fields[key] = fmt.Sprint(field)
		}
	default:
		c.mistyped(property, "a string or an object")
		return Mount{}, false
	}
	m := Mount{Type: fields["type"], Source: fields["source"], Target: fields["target"],
		ReadOnly: fields["readonly"] == "true" || fields["readonly"] == "1"}
	if m.Type == "" {
		m.Type = Volume // as docker run --mount
	}
	for key := range fields {
		switch key {
		case "type", "source", "target", "readonly":
		case "consistency", "external", "volume-nocopy", "tmpfs-size", "tmpfs-mode":
			c.warn(property, key+" has no effect")
		default:
			c.refuse(property, fmt.Sprintf("the field %q of a mount is not known", key), "remove the field")
			return m, false
		}
	}
	if !printable(m.Source) || !path.IsAbs(m.Target) || !printable(m.Target) {
		c.refuse(property, fmt.Sprintf("%q is no absolute path in the sandbox", m.Target),
			"write target=/PLACE, of characters that can be seen")
		return m, false
	}
	if strings.Contains(m.Target, ":") { // engines and people read SRC:DST[:ro]
		c.refuse(property, fmt.Sprintf("the place %q has a colon", m.Target), "name another place in the sandbox")
		return m, false
	}
	m.Target = path.Clean(m.Target)
	return m, c.checkMount(property, &m)
}

// checkMount refuses a mount that would show the sandbox more of this host than the project.
func (c *composer) checkMount(property string, m *Mount) bool {
	switch m.Type {
	case Volume:
		if m.Source != "" && !volumeName().MatchString(m.Source) {
			c.refuse(property, fmt.Sprintf("%q is no name of a volume", m.Source),
				"for a directory of the project write type=bind")
			return false
		}
	case Tmpfs:
		if m.Source != "" {
			c.refuse(property, "a tmpfs has no source", "remove the source")
			return false
		}
	case Bind:
		source, ok := c.inProject(m.Source)
		if !ok {
			c.refuse(property, fmt.Sprintf("%s is not in the project", m.Source),
				"mount what lies in the project (${localWorkspaceFolder}/…); for anything else remove it, and use: "+
					"--mount SRC:DST")
			return false
		}
		m.Source = filepath.Join(c.Dir, source)
	default:
		c.refuse(property, fmt.Sprintf("there is no type of mount %q here", m.Type), "write bind, volume or tmpfs")
		return false
	}
	return true
}

// inProject returns a path of this host relative to the project. It reports false for one that does not lie in it, or
// that a link on its way leads out of. One that does not exist is for the start to report.
func (c *composer) inProject(source string) (string, bool) {
	if !filepath.IsAbs(source) {
		source = filepath.Join(c.Dir, source)
	}
	rel, err := filepath.Rel(c.Dir, source)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	if rel == "." {
		return rel, true
	}
	// What a link leads to is asked of the kernel, which keeps to the project.
	if _, err := c.Root.Stat(rel); err != nil {
		if _, err := c.Root.Lstat(rel); err == nil {
			return "", false
		}
	}
	return rel, true
}

// useWorkspace puts the place of the project in force.
func (c *composer) useWorkspace() {
	w := &c.plan.Workspace
	if value := c.doc.root["workspaceMount"]; value != nil {
		text, ok := c.text("workspaceMount", value)
		if !ok {
			return
		}
		if text == "" {
			c.warn("workspaceMount", "the project is mounted in each sandbox")
		} else {
			c.useWorkspaceMount(text)
		}
		if c.doc.root["workspaceFolder"] == nil {
			c.refuse("workspaceMount", "it needs workspaceFolder beside it",
				"name the directory in which to begin: workspaceFolder")
		}
	}
	if value := c.doc.root["workspaceFolder"]; value != nil {
		folder, ok := c.text("workspaceFolder", value)
		switch {
		case !ok:
		case !path.IsAbs(folder):
			c.refuse("workspaceFolder", fmt.Sprintf("%q is no absolute path", folder), "write an absolute path")
		default:
			w.Folder = path.Clean(folder)
			if w.Folder != w.Mount && !strings.HasPrefix(w.Folder, w.Mount+"/") {
				c.warn("workspaceFolder", "the project is not there, but at "+w.Mount+"; workspaceMount places it")
			}
		}
	}
}

// useWorkspaceMount puts workspaceMount in force: a bind of the project, or of a part of it.
func (c *composer) useWorkspaceMount(text string) {
	const property = "workspaceMount"
	fields := fieldsOf(text)
	if fields["type"] != Bind {
		c.refuse(property, "it is no bind of the project, or of a part of it",
			"write source=${localWorkspaceFolder},target=/PLACE,type=bind; an agent works on the project itself")
		return
	}
	m, ok := c.mount(property, text)
	if !ok {
		return
	}
	rel, _ := c.inProject(m.Source)
	if rel != "." {
		c.plan.Workspace.Source = rel
	}
	if m.ReadOnly {
		c.refuse(property, "the project is writable in a sandbox", "remove readonly")
	}
	c.plan.Workspace.Mount = m.Target
}
