package kube

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/trust"
)

// fill returns a file of yaml. <<value>> in a line becomes a value, and a line that is [[block]] becomes lines,
// indented as it is: another file, or a list of values. What is filled in is not read for either. text/template would
// do the same, and add five megabytes to the program: the linker must keep every method that a template might name.
func (o Options) fill(name string) (string, error) {
	source, err := sources.ReadFile("yaml/" + name + ".yaml")
	if err != nil {
		return "", err
	}
	values := o.values()
	var out strings.Builder
	for line := range strings.Lines(string(source)) {
		text := strings.TrimLeft(strings.TrimSuffix(line, "\n"), " ")
		block, isBlock := strings.CutPrefix(text, "[[")
		if !isBlock {
			out.WriteString(values.Replace(line))
			continue
		}
		lines, err := o.block(strings.TrimSuffix(block, "]]"))
		if err != nil {
			return "", err
		}
		pad := line[:strings.Index(line, "[[")]
		for l := range strings.Lines(lines) {
			out.WriteString(pad + l)
		}
	}
	return out.String(), nil
}

// block returns the lines of a block.
func (o Options) block(name string) (string, error) {
	switch name {
	case "podspec", "network":
		return o.fill(name + "-" + string(o.Shape))
	case "restart":
		if o.Form == Template { // its controller decides
			return "", nil
		}
		return "restartPolicy: Never\n", nil
	case "namespace":
		if o.Namespace == "" {
			return "", nil
		}
		return "namespace: " + quote(o.Namespace) + "\n", nil
	case "command":
		var lines strings.Builder
		for i, arg := range o.Command {
			if i == 0 {
				lines.WriteString("command:\n")
			}
			lines.WriteString("- " + quote(literal(arg)) + "\n")
		}
		return lines.String(), nil
	case "env":
		return environment(), nil
	}
	return o.fill(name)
}

// environment returns the agent's environment.
func environment() string {
	clients := trust.Environment{
		Proxy: "http://127.0.0.1:3128", NoProxy: []string{"localhost", "127.0.0.1", "::1", "aileron.internal"},
		CA: trust.CAFile, Bundle: trust.BundleFile,
	}
	var lines strings.Builder
	for _, pair := range append(clients.Variables(), "AILERON_API_URL=http://aileron.internal/v1") {
		name, value, _ := strings.Cut(pair, "=")
		fmt.Fprintf(&lines, "- {name: %s, value: %s}\n", name, quote(value))
	}
	return lines.String()
}

// values returns what stands for each value.
func (o Options) values() *strings.Replacer {
	relay := o.Relay
	if o.Form != Plane {
		relay = o.Name + "-agent:8443"
	}
	var ports []string
	for _, p := range o.NamePorts {
		ports = append(ports, strconv.Itoa(int(p)))
	}
	return strings.NewReplacer(
		"<<name>>", quote(o.Name), "<<agentName>>", quote(o.Name+"-agent"), "<<planeName>>", quote(o.Name+"-plane"),
		"<<uplinkSecret>>", quote(o.Name+"-uplink"), "<<grantsName>>", quote(o.Name+"-grants"),
		"<<secretsName>>", quote(o.Name+"-secrets"), "<<relayAddress>>", quote(relay),
		"<<image>>", quote(o.Image), "<<agentImage>>", quote(o.AgentImage),
		"<<planeUser>>", strconv.Itoa(planeUser), "<<gatewayUser>>", strconv.Itoa(gatewayUser),
		"<<agentUser>>", strconv.Itoa(o.AgentUser), "<<portList>>", strings.Join(ports, ","))
}

// literal returns what kubelet makes s of: it expands $(NAME), and takes $$ for $.
func literal(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// quote returns a string as YAML reads it, on one line: JSON is YAML.
func quote(s string) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string that is UTF-8
	return strings.TrimSuffix(out.String(), "\n")
}
