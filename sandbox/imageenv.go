package sandbox

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/sandbox/engine"
)

// maxOwnValue bounds what is kept of an image's own value of a variable. The
// kernel takes 128 KiB as one string, ours included.
const maxOwnValue = 32 << 10

// mergeEnv returns env with the image's own values before those of the variables
// in appendTo, so that of two settings of one thing ours is the last. The error
// is what the image lacks.
func mergeEnv(env, image, appendTo []string) ([]string, error) {
	env = slices.Clone(env)
	for i, pair := range env {
		name, ours, _ := strings.Cut(pair, "=")
		own := envValue(image, name)
		switch {
		case own == "" || !slices.Contains(appendTo, name):
		case len(own) > maxOwnValue:
			return nil, fmt.Errorf("a short %s: its own has %d bytes, and what a sandbox adds needs room behind at most %d",
				name, len(own), maxOwnValue)
		default:
			env[i] = name + "=" + own + " " + ours
		}
	}
	return env, nil
}

// envValue is the last value of a variable, or "".
func envValue(env []string, name string) (value string) {
	for _, pair := range env {
		if v, ok := strings.CutPrefix(pair, name+"="); ok {
			value = v
		}
	}
	return value
}

// unset are the variables of defaults that an environment does not have.
func unset(defaults, env []string) []string {
	return slices.DeleteFunc(slices.Clone(defaults), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.ContainsFunc(env, func(own string) bool { return strings.HasPrefix(own, name+"=") })
	})
}

// searchPath is the last PATH of an environment, or what runtimes take without
// one.
func searchPath(env []string) string {
	return cmp.Or(envValue(env, "PATH"), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
}

// volumeInProject is a volume of the image that the engine would make inside the
// person's project. One in the place of the project has no effect: the project
// is mounted there.
func volumeInProject(image engine.Image) string {
	for volume := range image.Volumes {
		if at := path.Clean("/" + volume); at != Workspace && Within(at, Workspace) {
			return volume
		}
	}
	return ""
}

// hasHome reports whether the image's own user has a home of its own: one that
// the image's environment names, or the one of a named user, which the engine
// reads from the image.
func hasHome(image engine.Image, user string) bool {
	return user != "" && user != "root" && !numeric(user) || namesHome(image.Env)
}

func namesHome(env []string) bool {
	return slices.ContainsFunc(env, func(pair string) bool { return strings.HasPrefix(pair, "HOME=/") })
}
