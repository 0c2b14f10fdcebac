package devcontainer

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// composer makes a plan.
type composer struct {
	Input
	ctx       context.Context //nolint:containedctx // of one call of Compose
	doc       *document
	plan      *Plan
	workspace string            // the value of ${containerWorkspaceFolder}
	argEnv    map[string]string // of runArgs
	added     int               // bytes that variables have added

	featureCommands []Command // of features, in their order
}

// use puts one property in force. The name is that in the file, and the value is not null.
type use func(c *composer, name string, value any)

// properties are those of the reference. What is not among them is warned about.
func properties() map[string]use {
	all := map[string]use{
		"$schema": nothing, "name": (*composer).useName,
		"image": (*composer).useImage, "build": (*composer).useBuild,
		"dockerFile": nothing, "context": nothing, // of useBuild
		"containerEnv": nothing, "remoteEnv": nothing, // of useEnv
		"containerUser": nothing, "remoteUser": nothing, // of useUser
		"updateRemoteUserUID": (*composer).useUpdateUID,
		"workspaceFolder":     nothing, "workspaceMount": nothing, // of useWorkspace
		"mounts": (*composer).useMounts, "init": (*composer).useInit, "forwardPorts": (*composer).usePorts,
		"initializeCommand": (*composer).useHostCommand,
		"runArgs":           (*composer).useEngineArgs, "customizations": (*composer).useCustomizations,

		"features": (*composer).useFeatures, "overrideFeatureInstallOrder": (*composer).useOrder,
		"dockerComposeFile": refuse("compose files describe several containers, and a sandbox is one",
			"build the service's image with: docker compose build, and name it: --image NAME"),
		"privileged":  refuseUnless(false, "it breaks the seal of the sandbox", "remove it"),
		"capAdd":      refuseList("a sandbox has no capabilities", "remove it"),
		"securityOpt": refuseList("a sandbox has the seccomp profile of aileron", "remove it"),

		"service": nothing, "runServices": nothing, // of dockerComposeFile
		"overrideCommand": warnUnless(true, "the sandbox runs the agent, and not the image's own command"),
		"shutdownAction":  warn("a sandbox ends with its command"),
		"appPort":         warn("ports are published with forwardPorts, or --port"),
		"portsAttributes": warn("it is for editors"), "otherPortsAttributes": warn("it is for editors"),
		"hostRequirements": warn("[sandbox] memory and cpus in config.toml are the limits of a sandbox"),
		"userEnvProbe":     warn("no profile of a shell is read; set variables with remoteEnv"),
		"waitFor":          warn("all commands are waited for"),
		"secrets": warn("credentials do not enter a sandbox: the proxy adds them; see aileron connector install and " +
			"aileron binding setup"),
		"extensions": warn("it is for editors"), "settings": warn("it is for editors"),
		"devPort": warn("it is for editors"),
	}
	for _, phase := range phases() {
		all[phase] = nothing // of useCommands
	}
	return all
}

// compose puts all properties in force.
func (c *composer) compose() {
	c.plan.Workspace = Workspace{Folder: c.workspace, Mount: path.Join("/workspaces", path.Base(c.Dir))}
	all := properties()
	for _, name := range slices.Sorted(maps.Keys(c.doc.root)) {
		value := c.doc.root[name]
		use, known := all[name]
		switch {
		case !known:
			c.warn(name, "there is no such property")
		case value != nil:
			use(c, name, value)
		}
	}
	c.useLegacyBuild()
	c.useEnv()
	c.useUser()
	c.useWorkspace()
	c.useCommands()
	c.findUnknown()
	c.boundAsked()
	p := c.plan
	if p.Image == "" && p.Build == nil && len(p.Refusals) == 0 && !c.Unbuilt {
		c.refuse("image", `it has neither "image" nor "build"`,
			"name an image, or a Dockerfile: aileron sandbox init shows how")
	}
}

// maxAsked bounds each kind of what a person is asked about, who has to read all of it.
const maxAsked = 64

// boundAsked refuses more of one kind than a person reads.
func (c *composer) boundAsked() {
	p, args := c.plan, 0
	if p.Build != nil {
		args = len(p.Build.Args)
	}
	for _, kind := range []struct {
		property, what string
		n              int
	}{
		{"mounts", "mounts", len(p.Mounts)}, {"forwardPorts", "ports", len(p.Ports)},
		{"containerEnv", "variables, with those of remoteEnv and runArgs", len(p.Env) + len(p.Unset)},
		{"build", "arguments", args}, {"localEnv", "variables of this host", len(p.Local)},
		{"customizations", "packages", len(p.Packages)},
	} {
		if kind.n > maxAsked {
			c.refuse(kind.property, fmt.Sprintf("it has %d %s, and a person is asked about at most %d", kind.n, kind.what,
				maxAsked), "remove some, or move them into the image")
		}
	}
}

func (c *composer) line(property string) int { return c.doc.lines[property] }

func (c *composer) warn(property, text string) {
	c.plan.Warnings = append(c.plan.Warnings, Note{Property: property, Line: c.line(property), Text: text})
}

func (c *composer) refuse(property, text, help string) {
	c.plan.Refusals = append(c.plan.Refusals, Note{property, c.line(property), text, help})
}

// mistyped refuses a value of another type.
func (c *composer) mistyped(property, want string) {
	c.refuse(property, "it is not "+want, "write "+want)
}

// text returns a value that has to be a string of printable characters.
func (c *composer) text(property string, value any) (string, bool) {
	s, ok := value.(string)
	switch {
	case !ok:
		c.mistyped(property, "a string")
	case !printable(s):
		c.refuse(property, "it has a character that cannot be seen", "remove the character")
		ok = false
	}
	return s, ok
}

// texts returns a value that has to be a list of strings.
func (c *composer) texts(property string, value any) (all []string, ok bool) {
	list, ok := value.([]any)
	if !ok {
		c.mistyped(property, "a list of strings")
		return nil, false
	}
	for _, item := range list {
		s, ok := c.text(property, item)
		if !ok {
			return nil, false
		}
		all = append(all, s)
	}
	return all, true
}

func nothing(*composer, string, any) {}

func warn(text string) use { return func(c *composer, name string, _ any) { c.warn(name, text) } }

func warnUnless(usual bool, text string) use {
	return func(c *composer, name string, value any) {
		if value != usual {
			c.warn(name, text)
		}
	}
}

func refuse(text, help string) use {
	return func(c *composer, name string, _ any) { c.refuse(name, text, help) }
}

func refuseUnless(usual bool, text, help string) use {
	return func(c *composer, name string, value any) {
		if value != usual {
			c.refuse(name, text, help)
		}
	}
}

func refuseList(text, help string) use {
	return func(c *composer, name string, value any) {
		if list, ok := value.([]any); !ok || len(list) > 0 {
			c.refuse(name, text, help)
		}
	}
}

func (c *composer) useName(name string, value any) {
	c.plan.Name, _ = c.text(name, value)
}

func (c *composer) useUpdateUID(name string, value any) {
	update, ok := value.(bool)
	if !ok {
		c.mistyped(name, "true or false")
		return
	}
	c.plan.UpdateUID = update
}

// useInit notes that an init is asked for. A sandbox has one in any case.
func (c *composer) useInit(name string, value any) {
	asked, ok := value.(bool)
	if !ok {
		c.mistyped(name, "true or false")
	}
	c.plan.Init = c.plan.Init || asked
}

// usePorts puts ports in force. One of another container does not exist here.
func (c *composer) usePorts(name string, value any) {
	list, ok := value.([]any)
	if !ok {
		c.mistyped(name, "a list of ports")
		return
	}
	for _, item := range list {
		text := fmt.Sprint(item)
		if host, rest, ok := strings.Cut(text, ":"); ok {
			if host != "localhost" && host != "127.0.0.1" {
				c.warn(name, fmt.Sprintf("%q is a port of another container", text))
				continue
			}
			text = rest
		}
		switch port, err := strconv.Atoi(text); {
		case err != nil || port < 1 || port > 65535:
			c.refuse(name, fmt.Sprintf("%q is no port", text), "write numbers from 1 to 65535")
		case !slices.Contains(c.plan.Ports, port):
			c.plan.Ports = append(c.plan.Ports, port)
		}
	}
}

// useUser puts the user of the command in force: remoteUser, else containerUser.
func (c *composer) useUser() {
	for _, name := range []string{"containerUser", "remoteUser"} {
		if value := c.doc.root[name]; value != nil {
			if user, ok := c.text(name, value); ok {
				c.plan.User = user
				if name == "containerUser" {
					c.plan.containerUser = user
				}
			}
		}
	}
}

// useEnv puts the variables in force. Those of the container are containerEnv, and before them what runArgs has; for
// the command remoteEnv precedes both. null takes a variable away, unless what precedes it has a value.
//
// The reference implementation makes the text "null" of it, in both. Its schema has null in remoteEnv alone, for a
// variable that is not there.
func (c *composer) useEnv() {
	env, unset := map[string]string{}, map[string]bool{}
	set := func(name, value string) {
		env[name] = value
		delete(unset, name)
	}
	c.readEnv("containerEnv", set, func(name string) { unset[name] = true })
	for name, value := range c.argEnv {
		set(name, value)
	}
	c.plan.Container = sorted(env)
	c.readEnv("remoteEnv", set, func(name string) {
		delete(env, name)
		unset[name] = true
	})
	c.plan.Env, c.plan.Unset = sorted(env), slices.Sorted(maps.Keys(unset))
	if c.plan.Unset == nil {
		c.plan.Unset = []string{}
	}
}

// readEnv calls set for each variable of a property, and take for each that is null.
func (c *composer) readEnv(property string, set func(name, value string), take func(name string)) {
	value := c.doc.root[property]
	object, ok := value.(map[string]any)
	if value != nil && !ok {
		c.mistyped(property, "an object of variables")
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		switch v := object[name].(type) {
		case string:
			set(name, v)
		case json.Number, bool: // the reference takes their text
			set(name, fmt.Sprint(v))
		case nil:
			take(name)
		default:
			c.mistyped(property+"."+name, "a string")
		}
	}
}

// findUnknown warns about variables that keep their text. Commands are read by a shell, which has variables of its own.
func (c *composer) findUnknown() {
	for _, name := range slices.Sorted(maps.Keys(c.doc.root)) {
		_, _ = replace(c.doc.root[name], func(found string, _ []string) (string, bool, error) {
			switch {
			case found == containerEnv && name == "remoteEnv", c.Verbatim:
			case found != containerEnv && strings.HasSuffix(name, "Command"):
			default:
				c.warn(name, fmt.Sprintf("${%s} is not replaced here", found))
			}
			return "", false, nil
		})
	}
}
