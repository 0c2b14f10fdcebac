package grants

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/ALRubinger/aileron/internal/format"
	"github.com/ALRubinger/aileron/spec/catalog"
	"github.com/ALRubinger/aileron/spec/store"
)

// File is the name of the file that lists what a directory grants.
const File = "grants.toml"

const (
	maxDocument   = 1 << 20 // bytes of [File]
	maxConnectors = 1024    // in it
)

// document is [File].
type document struct {
	Format     int         `toml:"format"`
	Connectors []connector `toml:"connector"`
}

// connector is one connector that is granted.
type connector struct {
	Dir      string `toml:"dir"`      // below the directory of the document
	Catalog  string `toml:"catalog"`  // or else a name of the catalogue
	Hash     string `toml:"hash"`     // of its content; required
	Identity string `toml:"identity"` // of the binding; "" is default
	Secret   secret `toml:"secret"`
}

// secret is where a credential comes from. Its zero value is none.
type secret struct {
	File     string   `toml:"file"` // absolute, or from the directory of the document
	Exec     []string `toml:"exec"` // a program and its arguments
	Username string   `toml:"username"`
}

func (s secret) isNone() bool { return s.File == "" && len(s.Exec) == 0 }

// parseDocument reads [File]. An unknown key is an error, and so is a connector without a hash.
func parseDocument(data []byte) (document, error) {
	var d document
	meta, err := toml.Decode(string(data), &d)
	if parse := (toml.ParseError{}); errors.As(err, &parse) {
		return d, fmt.Errorf("line %d: %s", parse.Position.Line, parse.Message)
	}
	if err != nil {
		return d, err
	}
	if d.Format > format.First {
		return d, fmt.Errorf("it has the format %d, and this aileron knows %d", d.Format, format.First)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return d, fmt.Errorf("the key %s is unknown", unknown[0])
	}
	if len(d.Connectors) > maxConnectors {
		return d, fmt.Errorf("it names %d connectors, and at most %d are possible", len(d.Connectors), maxConnectors)
	}
	for i, c := range d.Connectors {
		if err := c.check(); err != nil {
			return d, fmt.Errorf("connector %d: %w", i+1, err)
		}
	}
	return d, nil
}

// check returns an error for an entry that contradicts itself.
func (c connector) check() error {
	switch {
	case (c.Dir == "") == (c.Catalog == ""):
		return errors.New(`it needs one of dir = "DIRECTORY" and catalog = "NAME"`)
	case c.Dir != "" && !filepath.IsLocal(c.Dir):
		return fmt.Errorf("dir is %q, which leads out of the directory of grants", c.Dir)
	case c.Catalog != "" && !catalog.Has(c.Catalog):
		return fmt.Errorf("the catalogue has no connector %q", c.Catalog)
	case !store.IsHash(c.Hash):
		return fmt.Errorf("hash is %q: a connector is granted by its content hash, sha256: and 64 digits, "+
			"which aileron connector show and connector pack print", c.Hash)
	case c.Secret.File != "" && len(c.Secret.Exec) > 0:
		return errors.New("secret has file and exec, and only one of them is possible")
	case len(c.Secret.Exec) > 0 && !filepath.IsAbs(c.Secret.Exec[0]) && strings.Contains(c.Secret.Exec[0], "/"):
		return fmt.Errorf("secret.exec begins with %q: give an absolute path, or a name on PATH", c.Secret.Exec[0])
	}
	return nil
}

// name returns what errors call the entry.
func (c connector) name() string {
	if c.Catalog != "" {
		return "the catalogue's " + c.Catalog
	}
	return c.Dir
}
