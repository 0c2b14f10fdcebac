// Package kube prints a sandbox and its plane as YAML for Kubernetes.
//
// [Render] writes the whole of it:
//
//	err := kube.Render(os.Stdout, kube.Options{Shape: kube.Pods, Name: "fix-123",
//		Image: "registry.example/aileron:1", AgentImage: "registry.example/agent:1"})
//
// Every value is checked against the grammar of its place before it is printed, and is quoted besides: no value adds a
// line or a key. No client of Kubernetes is linked; tests read what is printed with the API's own types.
package kube

import (
	"cmp"
	"embed"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/internal/hint"
)

// Shape is how a sandbox and its plane are divided among Pods.
type Shape string

// The shapes.
const (
	// Sidecar is one Pod, whose gateway has NET_ADMIN until it is ready.
	Sidecar Shape = "sidecar"
	// Pods are two, without a capability: a NetworkPolicy keeps the agent's from the network, and the plane dials in.
	Pods Shape = "pods"
)

// Form is what is printed.
type Form string

// The forms.
const (
	Plain    Form = "pods"     // all of a session, as Pods
	Template Form = "template" // a SandboxTemplate of kubernetes-sigs/agent-sandbox
	Plane    Form = "plane"    // the plane alone, for a sandbox that is claimed
)

// The users of aileron's containers. That of its image is planeUser, whose directories there are its own.
const (
	planeUser   = 65532
	gatewayUser = 65533
)

// Options are what is printed. Zero values are the defaults of each comment.
type Options struct {
	Shape Shape // Sidecar
	Form  Form  // Plain
	// Name names all objects, and is required: a DNS label of at most 50 characters.
	Name string
	// Namespace is that of the objects; "" leaves it to kubectl.
	Namespace string
	// Image is that of aileron, and AgentImage the agent's. Both are required where they are used.
	Image, AgentImage string
	// Command replaces that of the agent's image.
	Command []string
	// AgentUser is the agent's numeric user; 0 is 1000. It cannot be one of aileron's own.
	AgentUser int
	// NamePorts are the ports at which names are reached in the shape Pods; nil is 443 and 80.
	NamePorts []uint16
	// Relay is where the plane of the form Plane finds the relay, as host:port.
	Relay string
}

//go:embed yaml
var sources embed.FS

var (
	label = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,48}[a-z0-9])?$`)
	// An image's name, tag and digest: the grammar of distribution/reference, without what it allows of hosts.
	image = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*` +
		`(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[a-f0-9]{64})?$`)
	address = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?:[0-9]{1,5}$`)
)

// maxCommand bounds the agent's command line.
const maxCommand = 32 << 10

func (o Options) withDefaults() Options {
	o.Shape, o.Form = cmp.Or(o.Shape, Sidecar), cmp.Or(o.Form, Plain)
	o.AgentUser = cmp.Or(o.AgentUser, 1000)
	if o.NamePorts == nil {
		o.NamePorts = []uint16{443, 80}
	}
	return o
}

// validate returns the first value that cannot be what it is for.
func (o Options) validate() error {
	type value struct {
		what, text string
		is         *regexp.Regexp
		wants      string
	}
	values := []value{{"name", o.Name, label,
		"lower-case letters, digits and hyphens, at most 50, and begin with a letter"}}
	if o.Namespace != "" {
		values = append(values, value{"namespace", o.Namespace, label, "a DNS label of at most 50 characters"})
	}
	const reference = "the name of an image, as registry.example/aileron:1 or one with @sha256:…"
	values = append(values, value{"image", o.Image, image, reference})
	if o.Form != Plane {
		values = append(values, value{"agent image", o.AgentImage, image, reference})
	} else {
		values = append(values, value{"relay", o.Relay, address, "a host and a port, as agent.namespace.svc:8443"})
	}
	for _, v := range values {
		if len(v.text) > 255 || !v.is.MatchString(v.text) {
			return hint.New(fmt.Errorf("the %s is %q", v.what, shorten(v.text)), "it must be %s", v.wants)
		}
	}
	if !slices.Contains([]Shape{Sidecar, Pods}, o.Shape) || !slices.Contains([]Form{Plain, Template, Plane}, o.Form) {
		return fmt.Errorf("there is no shape %q as %q", shorten(string(o.Shape)), shorten(string(o.Form)))
	}
	if o.AgentUser < 1 || o.AgentUser > 1<<31-1 || o.AgentUser == planeUser || o.AgentUser == gatewayUser {
		return hint.New(fmt.Errorf("the agent's user is %d", o.AgentUser),
			"it must be a number from 1 that is neither %d nor %d, which are aileron's own", planeUser, gatewayUser)
	}
	if slices.ContainsFunc(o.NamePorts, func(p uint16) bool { return p == 0 || p == 53 || p == 3128 || p == 8443 }) {
		return hint.New(fmt.Errorf("the ports of names are %v", o.NamePorts),
			"0, 53, 3128 and 8443 cannot be among them: the relay itself listens there")
	}
	size := 0
	for _, arg := range o.Command {
		size += len(arg)
		if !utf8.ValidString(arg) || strings.ContainsFunc(arg, isControl) {
			return fmt.Errorf("an argument of the command has a control character or is not UTF-8: %q", shorten(arg))
		}
	}
	if size > maxCommand {
		return fmt.Errorf("the command has %d bytes, at most %d", size, maxCommand)
	}
	return nil
}

// isControl reports whether YAML might take a character for the end of a line, or an editor for something else.
func isControl(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) || r == '\u2028' || r == '\u2029'
}

func shorten(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// Render writes the objects. Nothing is written if a value is refused.
func Render(w io.Writer, o Options) error {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return err
	}
	name := map[Form]string{Template: "sandboxtemplate", Plane: "plane", Plain: string(o.Shape)}[o.Form]
	text, err := o.fill(name)
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	return err
}
