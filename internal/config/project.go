package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/regular"
)

// ProjectFile is the name of the file in which a project declares what its sessions need.
const ProjectFile = ".aileron.toml"

// Project is the content of a project's file. A repository may bring it, and an agent may write it: it is a request, on
// which a person decides.
type Project struct {
	Path string `toml:"-"`
	Hash string `toml:"-"` // of its bytes: sha256:…

	Format     int               `toml:"format"`
	Agent      string            `toml:"agent"`
	Connectors []string          `toml:"connectors"` // the only ones that are used; nil: all
	Bindings   map[string]string `toml:"bindings"`   // the identity, by connector
	Egress     string            `toml:"egress"`
	Allow      []string          `toml:"allow"` // HOST or HOST:PORT
	Packages   []string          `toml:"packages"`
	Dockerfile string            `toml:"dockerfile"` // in the project, or off
	ReadOnly   bool              `toml:"read_only"`
	Protect    bool              `toml:"protect"`
	Mounts     []string          `toml:"mounts"` // SRC[:DST][:ro], with SRC in the project
	Env        map[string]string `toml:"env"`
	Ports      []string          `toml:"ports"`   // [HOST:]PORT
	Approve    []string          `toml:"approve"` // METHOD PATH: requests that a person is asked about
	Budget     map[string]Amount `toml:"budget"`  // what a session may use up at most
}

// projectKeys are the keys of [Project], which have one spelling. The decoder also takes others of their letters, and
// of two spellings it would take either: a person would agree to one, and get the other.
func projectKeys() []string {
	return []string{"format", "agent", "connectors", "bindings", "egress", "allow", "packages", "dockerfile", "read_only",
		"protect", "mounts", "env", "ports", "approve", "budget"}
}

// Bounds of a project's file. A person has to read what it asks for.
const (
	maxProjectFile  = 16 << 10
	maxProjectList  = 64
	maxProjectValue = 256
)

// ReadProject reads the file of the project in dir, which must be a path without links. It returns nil if there is
// none.
func ReadProject(dir string) (*Project, error) {
	path := filepath.Join(dir, ProjectFile)
	raw, err := regular.Read(path, maxProjectFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, projectError(path, err)
	}
	if err := checkFormat(raw, path); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	p := &Project{Path: path, Hash: "sha256:" + hex.EncodeToString(sum[:])}
	meta, err := toml.Decode(string(raw), p)
	if err == nil {
		err = checkKeys(meta)
	}
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, projectError(path, err)
	}
	return p, nil
}

// ForSandbox returns the keys of the file that only a sandbox can put in force.
func (p *Project) ForSandbox() (keys []string) {
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"packages", len(p.Packages) > 0}, {"dockerfile", p.Dockerfile != ""}, {"read_only", p.ReadOnly},
		{"protect", p.Protect}, {"mounts", len(p.Mounts) > 0}, {"env", len(p.Env) > 0}, {"ports", len(p.Ports) > 0},
	} {
		if k.set {
			keys = append(keys, k.name)
		}
	}
	return keys
}

// projectError adds the path and a hint to an error in a project's file.
func projectError(path string, err error) error {
	return hint.New(fmt.Errorf("read %s: %w", path, err),
		"correct the file (docs/configuration.md lists its keys), or start without it: --ignore-project")
}

// checkKeys returns an error for a key that is not one of [Project], is spelled in another way, or has no table where
// it must have one.
func checkKeys(meta toml.MetaData) error {
	if meta.IsDefined("unattended") || meta.IsDefined("sandbox", "unattended") {
		return errors.New("unattended is not for a project to decide: it is a flag, and a key of your own config.toml")
	}
	for _, k := range meta.Keys() {
		table := k[0] == "bindings" || k[0] == "env" || k[0] == "budget"
		if !slices.Contains(projectKeys(), k[0]) || len(k) > 2 || len(k) == 2 && !table {
			return fmt.Errorf("unknown key %s", k)
		}
		// The decoder leaves a map empty, without an error, if the file has something else than a table.
		if table && meta.Type(k[0]) != "Hash" {
			return fmt.Errorf("%s is no table; write [%s] and NAME = \"VALUE\" below it", k[0], k[0])
		}
	}
	return nil
}

// check returns an error for a value that a person could not read, or that has no meaning.
func (p *Project) check() error {
	lists := map[string][]string{
		"connectors": p.Connectors, "allow": p.Allow, "packages": p.Packages,
		"agent": {p.Agent}, "egress": {p.Egress}, "dockerfile": {p.Dockerfile},
		"mounts": p.Mounts, "ports": p.Ports, "approve": p.Approve,
	}
	for name, value := range p.Env {
		// It would be another variable than the one that a flag replaces.
		if strings.Contains(name, "=") {
			return fmt.Errorf("env has the name %q", name)
		}
		lists["env"] = append(lists["env"], name, value)
	}
	for connector, identity := range p.Bindings {
		lists["bindings"] = append(lists["bindings"], connector, identity)
		if connector == "" || identity == "" {
			return errors.New(`bindings has an empty name; write CONNECTOR = "IDENTITY"`)
		}
	}
	for key, values := range lists {
		most := maxProjectList
		if key == "bindings" || key == "env" {
			most *= 2 // names and values
		}
		if len(values) > most {
			return fmt.Errorf("%s has more than %d entries", key, maxProjectList)
		}
		for _, v := range values {
			switch {
			case len(v) > maxProjectValue:
				return fmt.Errorf("%s has a value of more than %d bytes", key, maxProjectValue)
			case strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }):
				return fmt.Errorf("%s has a value with a control character", key)
			}
		}
	}
	if err := checkBudget("budget", p.Budget); err != nil {
		return err
	}
	if p.Egress != "" && p.Egress != "deny" && p.Egress != "passthrough" {
		return fmt.Errorf("egress is %q; it must be deny or passthrough", p.Egress)
	}
	if p.Dockerfile != "" && !filepath.IsLocal(p.Dockerfile) {
		return fmt.Errorf("dockerfile is %q; it must be a file in the project", p.Dockerfile)
	}
	return nil
}
