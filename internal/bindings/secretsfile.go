package bindings

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/unlock"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/vault"
)

// maxSecretsFile bounds a file of secrets.
const maxSecretsFile = 16 << 20

// Line is a line of a file of secrets.
type Line struct {
	n     int // of the line
	fqn   string
	value string
}

// ReadSecrets returns the secrets of a file as docker's --env-file has variables: a line each, as it is, without
// quotes; empty lines and those that begin with # are skipped. Errors name lines, never their content.
func ReadSecrets(u *unlock.Unlocker, path string) (secrets []Line, err error) {
	var raw []byte
	if path == "-" {
		raw, err = io.ReadAll(io.LimitReader(u.Stdin, maxSecretsFile))
	} else {
		raw, err = u.ReadSecretFile(path, maxSecretsFile)
	}
	if err != nil {
		return nil, hint.New(fmt.Errorf("read the secrets: %w", err), "name a readable file of lines CONNECTOR=SECRET")
	}
	n := 0
	for line := range bytes.Lines(raw) {
		n++
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if text == "" || text[0] == '#' {
			continue
		}
		fqn, value, ok := strings.Cut(text, "=")
		if _, err := spec.ParseFQN(fqn); !ok || err != nil && !connectors.IsShortName(fqn) {
			return nil, hint.New(fmt.Errorf("read the secrets: line %d is not CONNECTOR=SECRET", n),
				"write it as github=SECRET or github://acme/tracker=SECRET")
		}
		secrets = append(secrets, Line{n, fqn, value})
	}
	return secrets, nil
}

// split returns the user name, for a credential of kind basic, and the secret of the line of connector c.
func (l Line) split(c *spec.Connector) (username string, secret vault.Secret, err error) {
	value := l.value
	if need := c.Credential(); need != nil && need.Kind.HasUsername() {
		var ok bool
		if username, value, ok = strings.Cut(value, ":"); !ok {
			return "", secret, hint.New(fmt.Errorf("read the secrets: line %d has no user name, and %s needs one", l.n, c.FQN),
				"write it as %s=USER:SECRET", c.FQN)
		}
	}
	if secret, err = vault.NewSecret([]byte(value)); err != nil {
		return "", secret, hint.New(fmt.Errorf("read the secrets: line %d: %w", l.n, err),
			"write the secret as it is, in one line")
	}
	return username, secret, nil
}
