package devcontainer

import (
	"fmt"
	"slices"
	"strings"
)

// engineArg is what becomes of an argument of docker run.
type engineArg struct {
	names string // separated by spaces
	value bool   // one follows
	text  string // why it is refused, or has no effect
	help  string // "" for one that has no effect
}

// engineArgs are the arguments of runArgs that have another answer than that they are not known.
func engineArgs() []engineArg {
	const seal = "it breaks the seal of the sandbox"
	return []engineArg{
		{"--privileged", false, seal, "remove it"},
		{"--network --net", true, seal + ", which has the gateway's network", "remove it"},
		{"--cap-add --security-opt --userns --pid --ipc --uts --cgroupns --cgroup-parent --runtime --sysctl", true, seal,
			"remove it"},
		{"--device --device-cgroup-rule --device-read-bps --gpus", true, seal + ", which has no devices", "remove it"},
		{"-v --volume --volumes-from --mount", true, "mounts have a property of their own", "write it in mounts"},
		{"-p --publish", true, "ports have a property of their own", "write it in forwardPorts"},
		{"-P --publish-all", false, "ports have a property of their own", "write them in forwardPorts"},
		{"-u --user", true, "the user has a property of its own", "write it as containerUser"},
		{"-w --workdir", true, "the directory has a property of its own", "write it as workspaceFolder"},
		{"--env-file", true, "it is a file of this host", "write the variables in containerEnv"},
		{"--add-host --dns --dns-search --dns-option --link --network-alias --ip --ip6 --mac-address", true,
			"names lead to the gateway, and nowhere else", "remove it; aileron allow opens a host"},
		{"--entrypoint", true, "the sandbox runs the agent", "remove it"},
		{"--group-add", true, "the user of a sandbox has the groups of the image", "add it in the Dockerfile"},

		{"--init", false, "", ""},
		{"--rm -d --detach -i --interactive -t --tty -it -ti --sig-proxy --no-healthcheck --read-only", false,
			"has no effect", ""},
		{"--cap-drop", true, "", ""}, // a sandbox has none
		{"--name --hostname -h --label -l --shm-size --memory -m --memory-swap --memory-reservation --cpus --cpu-shares " +
			"--cpuset-cpus --pids-limit --ulimit --platform --pull --restart --stop-timeout --stop-signal --log-driver " +
			"--log-opt --health-cmd --oom-score-adj", true, "has no effect", ""},
	}
}

// useEngineArgs reads the arguments for docker run. Each that is not known is refused: what it does to the seal is not
// known either.
func (c *composer) useEngineArgs(name string, value any) {
	args, ok := c.texts(name, value)
	if !ok {
		return
	}
	for len(args) > 0 {
		arg, given, hasValue := splitArg(args[0])
		args = args[1:]
		known := findArg(arg)
		if takesValue := arg == "-e" || arg == "--env" || arg == "--tmpfs" || known.value; takesValue && !hasValue {
			if len(args) == 0 {
				c.refuse(name, arg+" has no value", "remove it")
				return
			}
			given, args = args[0], args[1:]
		}
		c.useEngineArg(name, arg, given, known)
	}
}

// splitArg returns the name of an argument and what is given with it: --name=value, or -nvalue.
func splitArg(arg string) (name, value string, hasValue bool) {
	if strings.HasPrefix(arg, "--") || len(arg) <= 2 || arg == "-it" || arg == "-ti" {
		return strings.Cut(arg, "=")
	}
	return arg[:2], strings.TrimPrefix(arg[2:], "="), true
}

func (c *composer) useEngineArg(name, arg, value string, known engineArg) {
	switch {
	case arg == "-e" || arg == "--env":
		variable, text, ok := strings.Cut(value, "=")
		if !ok {
			c.refuse(name, fmt.Sprintf("%s %s takes the variable of this host", arg, variable),
				"write it in containerEnv: ${localEnv:"+variable+"}")
			return
		}
		if c.argEnv == nil {
			c.argEnv = map[string]string{}
		}
		c.argEnv[variable] = text
	case arg == "--tmpfs":
		target, _, _ := strings.Cut(value, ":")
		if m, ok := c.mount(name, map[string]any{"type": Tmpfs, "target": target}); ok {
			c.plan.Mounts = append(c.plan.Mounts, m)
		}
	case arg == "--init":
		c.plan.Init = true
	case known.names == "":
		c.refuse(name, fmt.Sprintf("%s is not known here", arg), "remove it, or start without the file: --devcontainer=off")
	case known.help != "":
		c.refuse(name, arg+": "+known.text, known.help)
	case known.text != "":
		c.warn(name, arg+" "+known.text)
	}
}

func findArg(arg string) engineArg {
	for _, a := range engineArgs() {
		if slices.Contains(strings.Fields(a.names), arg) {
			return a
		}
	}
	return engineArg{}
}
