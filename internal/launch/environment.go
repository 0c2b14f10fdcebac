package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/session"
	"github.com/ALRubinger/aileron/internal/trust"
	"github.com/ALRubinger/aileron/sandbox"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// maxVariable bounds a variable and its value. The kernel takes 128 KiB.
const maxVariable = 64 << 10

// CheckVariable returns an error for a K=V that is no variable, or is one that a session sets itself. The error has no
// byte of the value.
func CheckVariable(text string) error {
	name, value, ok := strings.Cut(text, "=")
	bad := func(why string) error {
		return hint.New(fmt.Errorf("pass the variable %.80q: %s", name, why), "a variable is K=V, as in CI=1")
	}
	switch {
	case !ok: // without its text, which may be a value
		return hint.New(errors.New("pass a variable: it is not K=V"), "give the value too, as in CI=1 or CI=\"$CI\"")
	case !variableName.MatchString(name):
		return bad("it is not K=V")
	case strings.ContainsRune(value, 0) || len(text) > maxVariable:
		return bad(fmt.Sprintf("its value has a zero byte, or more than %d KiB", maxVariable>>10))
	case strings.HasPrefix(name, "AILERON_"), slices.Contains(sessionVariables(), name):
		return hint.New(fmt.Errorf("pass the variable %.80q: the session sets it", name),
			"leave it out: it leads clients to the proxy, or tells them whom to trust")
	}
	return nil
}

// sessionVariables returns the names of the variables by which programs use and trust the proxy.
func sessionVariables() []string {
	names := []string{trust.JavaVariable}
	for _, pair := range (trust.Environment{Proxy: "p", NoProxy: []string{"n"}, CA: "c", Bundle: "b"}).Variables() {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	return names
}

// checkVariables refuses a variable of the user's that has a bound secret in its value: the sandbox must never have
// one. The error names the variable and the binding, and no byte of the value.
func (b *sandboxed) checkVariables() error {
	return CheckSecrets(slices.Concat(b.Variables, b.Searched), b.session.HoldsSecret)
}

// beforeBuild refuses what went into the image that is about to be built, as checkVariables does: the session opens
// when there is an image.
func (b *sandboxed) beforeBuild(ctx context.Context) error {
	if len(b.Searched) == 0 || b.Vault == nil {
		return nil
	}
	v, err := b.Vault(ctx)
	if err != nil || v == nil {
		return err
	}
	return CheckSecrets(b.Searched, func(text string) (string, error) { return session.HoldsSecret(v, text) })
}

// CheckSecrets returns an error for the first of variables, K=V, whose value holds the secret of a binding, by its
// name.
func CheckSecrets(variables []string, holds func(text string) (binding string, err error)) error {
	for _, pair := range variables {
		name, value, _ := strings.Cut(pair, "=")
		binding, err := holds(value)
		if err != nil {
			return fmt.Errorf("compare the variable %s with the bound secrets: %w", name, err)
		}
		if binding != "" {
			return hint.New(fmt.Errorf("pass the variable %s: its value holds the secret of the binding %s", name, binding),
				"leave it out: the proxy adds the credential to what the sandbox sends")
		}
	}
	return nil
}

const (
	localtime = "/etc/localtime"
	zoneinfo  = "usr/share/zoneinfo"
)

// timeZone is the time zone of a host. Its data is nil where there is none.
type timeZone struct {
	name string // as in Europe/Berlin; "" is unknown
	data []byte // what /etc/localtime holds
}

// hostZone returns the time zone of the host whose files are below root: the one
// that the variable TZ names, else the one of /etc/localtime.
func hostZone(tz, root string) timeZone {
	database := filepath.Join(root, zoneinfo)
	if name := strings.TrimPrefix(tz, ":"); filepath.IsLocal(name) {
		if data := zoneData(filepath.Join(database, name)); data != nil {
			return timeZone{name, data}
		}
	}
	file := filepath.Join(root, localtime)
	zone := timeZone{data: zoneData(file)}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		if _, name, ok := strings.Cut(real, zoneinfo+"/"); ok && zone.data != nil {
			zone.name = name
		}
	}
	return zone
}

// addZone adds the time zone of the host to what a sandbox gets.
func (b *sandboxed) addZone(u *sandbox.Uplink, zone timeZone) {
	// A mount in a read-only root would end where the image's link leads: in its own file of another zone.
	if zone.data != nil && !b.ReadOnly {
		u.Files = append(u.Files, sandbox.File{Path: localtime, Mode: 0o644, Data: zone.data})
	}
	// In other images the name may mean nothing, and a program would take it for UTC.
	if zone.name != "" && b.Image.Dockerfile != nil {
		u.Defaults = append(u.Defaults, "TZ="+zone.name)
	}
}

// maxZone bounds a file of a time zone. The largest has 4 KiB.
const maxZone = 64 << 10

// zoneData reads a file of a time zone (RFC 9636). It is nil for any other file.
func zoneData(file string) []byte {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Size() > maxZone {
		return nil
	}
	data, err := os.ReadFile(file)
	if err != nil || !bytes.HasPrefix(data, []byte("TZif")) {
		return nil
	}
	if _, err := time.LoadLocationFromTZData("", data); err != nil {
		return nil
	}
	return data
}
