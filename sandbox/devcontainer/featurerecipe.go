package devcontainer

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/dockerfile"
)

// featuresAt is where a build has the features.
const featuresAt = "/tmp/aileron-features"

// imageUser is what an image may name as its user.
var imageUser = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*(:[A-Za-z0-9_.][A-Za-z0-9_.-]*)?$`)
})

// FeatureRecipe returns the Dockerfile and the files of its context that install the features, in their order, on the
// image that the build argument BASE names, whose user is user. The Dockerfile is our own, of instructions that a
// Dockerfile of a project may have too: no text of a feature is an instruction.
func (p *Plan) FeatureRecipe(user string) (file []byte, context []File, err error) {
	if user == "" {
		user = "root"
	}
	if !imageUser().MatchString(user) {
		return nil, nil, hint.New(fmt.Errorf("install features: the user of the image is %q", user),
			"name another image, or leave the features out")
	}
	container, _, _ := strings.Cut(user, ":")
	if p.containerUser != "" {
		container = p.containerUser
	}
	remote := container
	if p.User != "" {
		remote = p.User
	}
	var s strings.Builder
	s.WriteString("ARG BASE\nFROM ${BASE}\nUSER root\n")
	for i, f := range p.Features {
		for _, v := range f.Env {
			fmt.Fprintf(&s, "ENV %s=\"%s\"\n", v.Name, escapeEnv.Replace(v.Value))
		}
		name := "f" + strconv.Itoa(i)
		script := name + ".sh"
		fmt.Fprintf(&s, "COPY %s %s/\nCOPY %s %s/\n", script, featuresAt, name, path.Join(featuresAt, name))
		fmt.Fprintf(&s, "RUN [\"/bin/sh\", \"%s\"]\n", path.Join(featuresAt, script))
		context = append(context, File{Path: name, Mode: fs.ModeDir | 0o755})
		for _, file := range f.Files {
			file.Path = path.Join(name, file.Path)
			context = append(context, file)
		}
		context = append(context, File{Path: script, Mode: 0o644, Data: []byte(f.script(name, container, remote))})
	}
	fmt.Fprintf(&s, "RUN [\"/bin/sh\", \"-c\", \"rm -rf %s\"]\nUSER %s\n", featuresAt, user)
	if _, err := dockerfile.Read([]byte(s.String()), dockerfile.WithContext); err != nil {
		return nil, nil, errors.Join(errors.New("install features"), err)
	}
	return []byte(s.String()), context, nil
}

// escapeEnv escapes what has a meaning between quotes in a Dockerfile, but for the $ of a variable of the image.
var escapeEnv = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// script returns what runs install.sh with the variables that the format describes.
func (f Feature) script(name, container, remote string) string {
	var s strings.Builder
	s.WriteString(`set -e
home() {
	{ command -v getent >/dev/null 2>&1 && getent passwd "$1" || grep -E "^$1:|^[^:]*:[^:]*:$1:" /etc/passwd || true
	} | head -n 1 | cut -d: -f6
}
`)
	for _, user := range []Variable{{"_CONTAINER_USER", container}, {"_REMOTE_USER", remote}} {
		fmt.Fprintf(&s, "%s=%s\n%[1]s_HOME=$(home \"$%[1]s\")\nexport %[1]s %[1]s_HOME\n", user.Name, quote(user.Value))
	}
	for _, v := range f.Options {
		fmt.Fprintf(&s, "export %s=%s\n", v.Name, quote(v.Value))
	}
	fmt.Fprintf(&s, "cd %s\nchmod -R 0755 .\nexec ./%s\n", path.Join(featuresAt, name), featureInstall)
	return s.String()
}

// FeatureDigest returns a digest of all of which the features are a layer, but for the image below and its user; "" for
// none.
func (p *Plan) FeatureDigest() string {
	if len(p.Features) == 0 {
		return ""
	}
	parts := [][]byte{[]byte(p.containerUser), []byte(p.User)}
	for _, f := range p.Features {
		parts = append(parts, []byte(f.Ref), []byte(f.Manifest), []byte(f.Digest))
		for _, all := range [][]Variable{f.Options, f.Env} {
			parts = append(parts, []byte(strconv.Itoa(len(all))))
			for _, v := range all {
				parts = append(parts, []byte(v.Name), []byte(v.Value))
			}
		}
	}
	return digest(parts...)
}
