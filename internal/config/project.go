package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
	"golang.org/x/sys/unix"

	"github.com/ALRubinger/aileron/internal/hint"
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
}

// projectKeys are the keys of [Project], which have one spelling. The decoder also takes others of their letters, and
// of two spellings it would take either: a person would agree to one, and get the other.
func projectKeys() []string {
	return []string{"format", "agent", "connectors", "bindings", "egress", "allow", "packages", "dockerfile", "read_only",
		"protect"}
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
	raw, err := readProjectFile(path)
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
		err = checkKeys(meta.Keys())
	}
	if err == nil {
		err = p.check()
	}
	if err != nil {
		return nil, projectError(path, err)
	}
	return p, nil
}

// projectError adds the path and a hint to an error in a project's file.
func projectError(path string, err error) error {
	return hint.New(fmt.Errorf("read %s: %w", path, err),
		"correct the file (docs/configuration.md lists its keys), or start without it: --ignore-project")
}

// readProjectFile reads a regular file of bounded size. A link of a repository may lead to any file of its user, and a
// named pipe would keep its reader waiting.
func readProjectFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, errors.New("it is a symbolic link")
	}
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return nil, pathErr.Err
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxProjectFile+1))
	if err == nil && len(raw) > maxProjectFile {
		err = fmt.Errorf("it is larger than %d bytes", maxProjectFile)
	}
	return raw, err
}

// checkKeys returns an error for a key that is not one of [Project], or is spelled in another way.
func checkKeys(keys []toml.Key) error {
	for _, k := range keys {
		if !slices.Contains(projectKeys(), k[0]) || len(k) > 2 || len(k) == 2 && k[0] != "bindings" {
			return fmt.Errorf("unknown key %s", k)
		}
	}
	return nil
}

// check returns an error for a value that a person could not read, or that has no meaning.
func (p *Project) check() error {
	lists := map[string][]string{
		"connectors": p.Connectors, "allow": p.Allow, "packages": p.Packages,
		"agent": {p.Agent}, "egress": {p.Egress}, "dockerfile": {p.Dockerfile},
	}
	for connector, identity := range p.Bindings {
		lists["bindings"] = append(lists["bindings"], connector, identity)
		if connector == "" || identity == "" {
			return errors.New(`bindings has an empty name; write CONNECTOR = "IDENTITY"`)
		}
	}
	for key, values := range lists {
		if len(values) > 2*maxProjectList || len(values) > maxProjectList && key != "bindings" {
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
	if p.Egress != "" && p.Egress != "deny" && p.Egress != "passthrough" {
		return fmt.Errorf("egress is %q; it must be deny or passthrough", p.Egress)
	}
	if p.Dockerfile != "" && !filepath.IsLocal(p.Dockerfile) {
		return fmt.Errorf("dockerfile is %q; it must be a file in the project", p.Dockerfile)
	}
	return nil
}
