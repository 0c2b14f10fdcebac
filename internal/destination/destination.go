// Package destination is where the audit log is shipped to, and asked for later: [ParseURL]
// reads where that is, and [Ship] ships.
package destination

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/postgres"
)

// Variable is the variable of the environment that has the URL if no flag does.
const Variable = "AILERON_AUDIT_URL"

// maxURL bounds the file of a URL.
const maxURL = 16 << 10

// errPassword is returned for a URL in an argument: other users of the host can read it.
var errPassword = hint.New(errors.New("it has a password, and other users of this host can read arguments"),
	"put the URL into a file of mode 0600 and write @FILE, or set %s, or name the password in ~/.pgpass", Variable)

// ParseURL reads the value of a flag: a URL without a password, or @FILE for a file that has one; or, if it is empty,
// the value of Variable.
func ParseURL(flag string, env func(string) string) (*url.URL, error) {
	text := flag
	if text == "" {
		text = env(Variable)
	}
	if text == "" {
		return nil, hint.New(errors.New("there is no URL"), "postgres://USER@HOST/DATABASE, @FILE with one, or %s", Variable)
	}
	u, err := ParseSetting(text)
	if err != nil {
		return nil, err
	}
	_, secret := u.User.Password()
	if flag != "" && !strings.HasPrefix(flag, "@") && (secret || u.Query().Has("password")) {
		return nil, errPassword
	}
	return u, nil
}

// ParseSetting reads a URL, or @FILE, that no argument has.
func ParseSetting(text string) (*url.URL, error) {
	if path, isFile := strings.CutPrefix(text, "@"); isFile {
		raw, err := readURL(path)
		if err != nil {
			return nil, err
		}
		text = raw
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return nil, errors.New("it is not a URL") // which may have a password
	}
	return u, nil
}

// readURL reads a URL in the first line of a file. It may be a link, as mounted secrets are.
func readURL(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxURL))
	text := strings.TrimSpace(string(raw))
	if err == nil && (text == "" || strings.ContainsAny(text, "\r\n")) {
		err = fmt.Errorf("%s does not have one line with a URL", path)
	}
	return text, err
}

// Database returns the database that a URL names.
func Database(u *url.URL, env func(string) string) (*postgres.Database, error) {
	if !slices.Contains(postgres.Schemes, u.Scheme) {
		return nil, fmt.Errorf("%s is not a URL of a database that can be asked: it must be postgres://…", u.Scheme)
	}
	return postgres.Parse(u.String(), env)
}
