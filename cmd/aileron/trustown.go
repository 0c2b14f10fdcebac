package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/imagefs"
)

// What follows is merged with what the image has of its own.

// javaStores are Java's own roots, beside those of the image's JAVA_HOME.
var javaStores = []string{"/etc/ssl/certs/java/cacerts", "/etc/pki/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts"}

// An image may name as many Javas as it likes. These are read.
const (
	maxJavaHomes = 8
	maxJavaRoots = 16 << 20
)

// javaRoots are what the image's Java trusts, as PEM; nil when it has no
// store. An error says which of them is not read.
func (b *trustFiles) javaRoots(ctx context.Context) (roots []byte, err error) {
	read := map[string]bool{}
	for _, name := range b.javaStores() {
		if len(roots) > maxJavaRoots {
			return roots, errors.Join(err, fmt.Errorf("%s: those before it are %d MiB already", name, len(roots)>>20))
		}
		at, findErr := imagefs.Resolve(b.fsys, strings.TrimPrefix(name, "/"))
		if findErr == nil && (!at.Exists() || read[at.Path]) {
			continue
		}
		read[at.Path] = true
		data, readErr := fs.ReadFile(b.fsys, strings.TrimPrefix(name, "/"))
		if readErr == nil {
			data, readErr = ca.JavaRoots(data)
		}
		if readErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, readErr))
			continue
		}
		roots = append(roots, data...)
	}
	return roots, err
}

// javaStores are the known places, and those of the Java that the image's
// environment names.
func (b *trustFiles) javaStores() []string {
	homes := []string{b.getenv("JAVA_HOME")}
	for _, dir := range strings.Split(b.getenv("PATH"), ":") {
		if home, ok := strings.CutSuffix(dir, "/bin"); ok && len(homes) < maxJavaHomes && (strings.Contains(home, "java") || strings.Contains(home, "jdk") || strings.Contains(home, "jre")) {
			homes = append(homes, home)
		}
	}
	stores := slices.Clone(javaStores)
	for _, home := range homes {
		if store := path.Join(home, "lib/security/cacerts"); path.IsAbs(home) && !slices.Contains(stores, store) {
			stores = append(stores, store, path.Join(home, "jre/lib/security/cacerts")) // the second one: a JDK 8
		}
	}
	return stores
}

const firefoxPolicies = "/etc/firefox/policies/policies.json"

// firefoxPolicies are the image's own policies, which are one file, with the
// CA among the certificates to install.
func (b *trustFiles) firefoxPolicies(ctx context.Context) ([]byte, error) {
	own, err := fs.ReadFile(b.fsys, strings.TrimPrefix(firefoxPolicies, "/"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := map[string]any{}
	if own != nil {
		if err := json.Unmarshal(own, &all); err != nil {
			return nil, fmt.Errorf("read %s of the image: %w", firefoxPolicies, err)
		}
		if all == nil { // it said null
			all = map[string]any{}
		}
	}
	policies := object(all, "policies")
	certificates := object(policies, "Certificates")
	install, _ := certificates["Install"].([]any)
	certificates["Install"] = append(install, boxCA)
	return json.Marshal(all)
}

// object is the object under a key, made when there is none.
func object(in map[string]any, key string) map[string]any {
	found, ok := in[key].(map[string]any)
	if !ok {
		found = map[string]any{}
		in[key] = found
	}
	return found
}
