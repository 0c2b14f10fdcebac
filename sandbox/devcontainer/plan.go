package devcontainer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The tiers of a sandbox, as AILERON_SANDBOX_TIER has them.
const (
	TierBase         = "base"         // aileron's own image
	TierDevcontainer = "devcontainer" // the image, or the Dockerfile, of the configuration
	TierBYO          = "byo"          // an image that a person, or customizations.aileron, names
)

// Plan is what a configuration asks for. All values are those after the replacement of variables, but for
// ${containerEnv:…}.
type Plan struct {
	Tier   string `json:"tier"`
	File   string `json:"file"`   // of the configuration, relative to the project
	Digest string `json:"digest"` // of all that went in: sha256:…
	Name   string `json:"name,omitempty"`

	Image string `json:"image,omitempty"` // that runs as it is
	Build *Build `json:"build,omitempty"`
	// Features are installed on the image, in this order. Of those that were not fetched the name is known alone.
	Features []Feature `json:"features"`
	// Requested is what is fetched for the features; nil is nothing.
	Requested *FeatureRequest `json:"-"`
	Unfetched bool            `json:"-"`

	User      string `json:"user,omitempty"` // of the command; "" is the image's
	UpdateUID bool   `json:"update_remote_user_uid"`
	// Env are the variables of the command, sorted: those of remoteEnv take precedence. Unset are those that the command
	// does not have.
	Env   []Variable `json:"env"`
	Unset []string   `json:"unset"`
	// Container are the variables of the container, sorted, to which ${containerEnv:…} in Env refers before the image's.
	Container []Variable `json:"-"`

	Workspace Workspace `json:"workspace"`
	Mounts    []Mount   `json:"mounts"`
	Ports     []int     `json:"ports"`
	Init      bool      `json:"init"`
	Commands  []Command `json:"commands"`                     // in the sandbox, in this order
	OnHost    *Command  `json:"initialize_command,omitempty"` // on this host, before all else

	Egress     string   `json:"egress,omitempty"`
	Connectors []string `json:"connectors,omitempty"` // nil: not restricted
	Packages   []string `json:"packages,omitempty"`

	Warnings []Note `json:"warnings"` // what is not in force, or not in the same way
	Refusals []Note `json:"refusals"` // for each of these the sandbox does not start

	// Local are the variables of this host that the file names, sorted, with their values.
	Local []Variable `json:"-"`

	containerUser string // that of the file; "" is the image's
}

// Build is how an image is made.
type Build struct {
	Dockerfile string     `json:"dockerfile"` // relative to the project
	Context    string     `json:"context"`    // relative to the project
	Args       []Variable `json:"args"`
	Target     string     `json:"target,omitempty"`
	UsesBase   bool       `json:"uses_base"` // a stage is built on ${BASE}: the image of the agent
	Reads      []string   `json:"reads"`     // the files that are copied from the context, relative to it

	Data  []byte `json:"-"` // of the Dockerfile
	Files []File `json:"-"` // of Reads, and the directories above them
}

// Variable is a variable of an environment, or of a build.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// maxValue bounds a variable of a command with those of the container in it, in bytes. A process takes 128 KiB.
const maxValue = 64 << 10

// In returns the value with ${containerEnv:NAME[:DEFAULT]} replaced by those of the container. The error is for one of
// more than 64 KiB.
func (v Variable) In(getenv func(name string) (string, bool)) (string, error) {
	added := len(v.Value)
	return replaceText(v.Value, func(name string, args []string) (string, bool, error) {
		if name != containerEnv || len(args) == 0 {
			return "", false, nil
		}
		found, ok := getenv(args[0])
		if !ok && len(args) > 1 {
			found = args[1]
		}
		if added += len(found); added > maxValue {
			return "", false, fmt.Errorf("the variable %s has more than %d KiB in the container", v.Name, maxValue>>10)
		}
		return found, true, nil
	})
}

// Workspace is where the project is, besides the places that it has in each sandbox.
type Workspace struct {
	Folder string `json:"folder"`           // in which the command begins
	Mount  string `json:"mount"`            // the place of Source
	Source string `json:"source,omitempty"` // a part of the project, relative to it; "" is the project
}

// The kinds of mounts.
const (
	Bind   = "bind"
	Volume = "volume"
	Tmpfs  = "tmpfs"
)

// Mount is a place in the sandbox that has something else than the image.
type Mount struct {
	Type     string `json:"type"`
	Source   string `json:"source,omitempty"` // a path of this host, or the name of a volume; "" is one without a name
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// Command is what runs at one point of the life of a sandbox.
type Command struct {
	Phase   string `json:"phase"`             // the name of the property
	Feature string `json:"feature,omitempty"` // that asks for it; "" is the file
	Parts   []Part `json:"parts"`             // that run at once
}

// Title returns what people call the command.
func (c Command) Title() string {
	if c.Feature == "" {
		return c.Phase
	}
	return c.Phase + " of the feature " + Word(c.Feature)
}

// Part is one program of a [Command].
type Part struct {
	Name  string   `json:"name,omitempty"` // of printable characters
	Shell string   `json:"shell,omitempty"`
	Args  []string `json:"args,omitempty"` // in place of Shell
}

// Note is about one property.
type Note struct {
	Property string `json:"property"` // with points: build.dockerfile
	Line     int    `json:"line,omitempty"`
	Text     string `json:"text"`
	Hint     string `json:"hint,omitempty"`
}

// String returns the note in one line, without the hint.
func (n Note) String() string {
	if n.Line == 0 {
		return n.Property + ": " + n.Text
	}
	return fmt.Sprintf("%s (line %d): %s", n.Property, n.Line, n.Text)
}

func newPlan(file string) *Plan {
	return &Plan{Tier: TierDevcontainer, File: file, UpdateUID: true, Features: []Feature{}, Env: []Variable{},
		Unset: []string{}, Mounts: []Mount{}, Ports: []int{}, Commands: []Command{}, Warnings: []Note{}, Refusals: []Note{}}
}

// None returns the plan of the project in dir without a configuration.
func None(dir, tier string) *Plan {
	p := newPlan("")
	p.Tier, p.Workspace = tier, Workspace{Folder: dir, Mount: dir}
	return p
}

// local notes that the file names a variable of this host.
func (p *Plan) local(name, value string) {
	v := Variable{name, value}
	if !slices.Contains(p.Local, v) {
		p.Local = append(p.Local, v)
	}
}

// sum sets the digest. data is the file.
func (c *composer) sum(data []byte) {
	p := c.plan
	slices.SortFunc(p.Local, byName)
	var parts [][]byte
	add := func(all ...string) {
		for _, s := range all {
			parts = append(parts, []byte(s))
		}
	}
	add(p.File)
	parts = append(parts, data)
	add(strconv.Itoa(len(p.Local)))
	for _, v := range p.Local {
		add(v.Name, v.Value)
	}
	if p.Build != nil {
		add("build", p.Build.Digest())
	}
	if p.Unfetched {
		add("unfetched", p.Requested.Key())
	} else if sum := p.FeatureDigest(); sum != "" {
		add("features", sum)
	}
	p.Digest = "sha256:" + digest(parts...)
}

// Digest returns a digest of all of which the image is made, but for its base. The numbers of arguments and of files
// are part of it: none of the one is read as one of the other.
func (b *Build) Digest() string {
	parts := [][]byte{b.Data, []byte(b.Target), []byte(strconv.Itoa(len(b.Args))), []byte(strconv.Itoa(len(b.Files)))}
	for _, v := range b.Args {
		parts = append(parts, []byte(v.Name), []byte(v.Value))
	}
	return digest(append(parts, partsOf(b.Files)...)...)
}

// partsOf returns what a digest has of files.
func partsOf(files []File) (parts [][]byte) {
	for _, f := range files {
		parts = append(parts, []byte(f.Path), []byte(f.Mode.String()), []byte(f.Link), f.Data)
	}
	return parts
}

// digestOf returns a digest of files.
func digestOf(files []File) string { return digest(partsOf(files)...) }

// digest returns the digest of parts, whose borders count.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:", len(part))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func byName(a, b Variable) int { return strings.Compare(a.Name, b.Name) }

// sorted returns variables, by name.
func sorted(values map[string]string) []Variable {
	all := []Variable{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, Variable{name, values[name]})
	}
	return all
}
