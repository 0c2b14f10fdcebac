package vault

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// ErrBadName is returned for text that cannot be the name of an identity or a
// binding.
var ErrBadName = errors.New("it is not a name")

// BindingName returns the name of a connector's binding of an identity:
// <kind>/<service>/<identity>. The service is the last part of the connector's
// name. If another connector has it, the owner precedes it (acme.google), and
// then the registry (hub.acme.google). All bindings of one connector have the
// same service.
func (v *Vault) BindingName(kind, connector, identity string) (string, error) {
	if err := checkIdentity(identity); err != nil {
		return "", err
	}
	names, err := v.Names()
	if err != nil {
		return "", err
	}
	return names.Of(kind, connector, identity)
}

// Names names the bindings of several connectors, each as [Vault.BindingName]
// does, and as if those named before were bound. It reads the vault once.
type Names struct {
	services   map[string]string // by connector
	connectors map[string]string // by service
}

// NewNames returns names of which none is taken.
func NewNames() *Names { return &Names{services: map[string]string{}, connectors: map[string]string{}} }

// Names returns the names that are taken.
func (v *Vault) Names() (*Names, error) {
	all, err := v.Bindings()
	if err != nil && len(all) == 0 && !errors.Is(err, ErrNotInitialised) {
		return nil, err
	}
	n := NewNames()
	for _, b := range all {
		service := strings.Split(b.Name, "/")[1]
		n.connectors[service] = b.Connector
		if n.services[b.Connector] == "" {
			n.services[b.Connector] = service
		}
	}
	return n, nil
}

// Of returns the name of a connector's binding of an identity.
func (n *Names) Of(kind, connector, identity string) (string, error) {
	if err := checkIdentity(identity); err != nil {
		return "", err
	}
	service := n.services[connector]
	if service == "" {
		var err error
		if service, err = n.free(connector); err != nil {
			return "", err
		}
		n.services[connector], n.connectors[service] = service, connector
	}
	return kind + "/" + service + "/" + identity, nil
}

// free returns a service's name that no other connector has.
func (n *Names) free(connector string) (string, error) {
	registry, path, _ := strings.Cut(connector, "://")
	parts := append([]string{registry}, strings.Split(path, "/")...)
	service := parts[len(parts)-1]
	for i := len(parts) - 2; i >= 0 && n.connectors[service] != ""; i-- {
		service = parts[i] + "." + service
	}
	if taken := n.connectors[service]; taken != "" {
		return "", fmt.Errorf("name the binding of %s: %s has every name that it could have", connector, taken)
	}
	return service, nil
}

func checkIdentity(identity string) error {
	if !isIdentity(identity) {
		return fmt.Errorf("the identity %.100q must be at most %d letters, digits and ._-@+: %w",
			identity, maxPart, ErrBadName)
	}
	return nil
}

// maxPart bounds each part of a name, so that it can be a file.
const maxPart = 200

func isIdentity(s string) bool {
	if s == "" || len(s) > maxPart || s[0] == '.' || s[0] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("._-@+", c) < 0 {
			return false
		}
	}
	return true
}

// bindingFile returns the file of a binding. It checks the parts of the name, which
// may come from a command line and become a path.
func bindingFile(name string) (string, error) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || !isIdentity(parts[0]) || !isIdentity(parts[1]) || !isIdentity(parts[2]) {
		return "", fmt.Errorf("the binding's name %.200q must be <kind>/<service>/<identity>: %w", name, ErrBadName)
	}
	return filepath.Join("bindings", parts[0], parts[1], parts[2]+".json"), nil
}

// Check returns an error if a binding contradicts itself, as Bind does. A username
// has no colon, as a colon ends it in the Basic scheme (RFC 7617 section 2).
func (b Binding) Check() error {
	if _, err := bindingFile(b.Name); err != nil {
		return err
	}
	parts := strings.Split(b.Name, "/")
	switch {
	case parts[0] != b.Kind || parts[2] != b.Identity:
		return fmt.Errorf("the binding %s is of kind %q and identity %q: %w", b.Name, b.Kind, b.Identity, ErrBadName)
	case b.Connector == "":
		return fmt.Errorf("the binding %s names no connector", b.Name)
	case b.Kind == "basic" && b.Username == "":
		return fmt.Errorf("the binding %s is of kind basic and has no username", b.Name)
	case len(b.Username) > 256:
		return fmt.Errorf("the username of %s has more than 256 bytes", b.Name)
	}
	for _, c := range []byte(b.Username) {
		if c < ' ' || c > '~' || c == ':' {
			return fmt.Errorf("the username of %s has a colon, or a character that is not printable ASCII", b.Name)
		}
	}
	return nil
}
