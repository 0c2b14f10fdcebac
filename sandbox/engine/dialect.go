package engine

import (
	"context"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
)

// dialect is all in which one engine differs from another. Adding an engine
// means implementing it, and adding it to dialects.
type dialect interface {
	// name is the engine's name, as users write it.
	name() string
	// find connects to the engine that the environment names, or to the one of
	// this host.
	find(ctx context.Context, patience Patience) (*Engine, error)
	// made reports whether an engine with these components is one of this kind.
	made(components []string) bool

	// seccomp returns the value of the security option for a seccomp profile. A
	// file that the engine needs for it is written to dir.
	seccomp(dir, profile string) (string, error)
	// hasInit reports whether the engine can run an init as process 1.
	hasInit() bool
	// adapt changes what is asked for where the engine would misread it, or
	// returns an error where it has no form for it.
	adapt(config *container.Config, host *container.HostConfig) error
	// maskOptions are the options of a tmpfs that hides what is below it.
	maskOptions() string
	// ownedTmpfs returns the options of a tmpfs that belongs to a user, and
	// whether the engine has such options.
	ownedTmpfs(uid, gid int) (options string, ok bool)
	// copiesOwners reports whether an archive of a container's files has their owners.
	copiesOwners() bool
	// makesBeside reports whether a container that refers to another's network
	// is made while that one starts.
	makesBeside() bool
	// sizesCreated reports whether a terminal can be resized before its
	// container has been started.
	sizesCreated() bool

	// onBuild returns what an image lets a build on top of it run.
	onBuild(ctx context.Context, e *Engine, id string) ([]string, error)

	// exit waits for the end of a container that has been started.
	exit(ctx context.Context, e *Engine, c *Container) (Exit, error)
	// list returns the containers that a filter selects.
	list(ctx context.Context, e *Engine, f Filter) ([]Listed, error)

	// hostAlias is the name by which a container finds the engine's host.
	hostAlias() string
	// aliasHosts are the entries of a container's hosts file that define the
	// alias, where the engine does not.
	aliasHosts() []string
	// bridge is the name of the network that containers have by default.
	bridge() string

	// texts are the parts of error messages, in lower case, that mean a fault.
	texts(f fault) []string
}

// dialects are the engines that are known, in the order in which they are
// tried.
func dialects() []dialect { return []dialect{podman{}, docker{}} }

// fault is what an error of an engine means, whatever its words.
type fault int

const (
	faultNotFound   fault = iota // there is no such container
	faultHalfGone                // the container is half removed
	faultRemoving                // its removal is under way
	faultEnding                  // its process ended when it was about to be killed
	faultDependents              // another container shares its network
	faultNoFile                  // there is no such file in the container
)

// means reports whether an error means a fault.
func (e *Engine) means(err error, f fault) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	for _, part := range e.dialect.texts(f) {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// IsNotFound reports whether an engine has refused a call because there is no
// such container or image.
func IsNotFound(err error) bool { return errdefs.IsNotFound(err) }

// noFile reports whether err means that a file is not in a container.
func (e *Engine) noFile(err error) bool { return IsNotFound(err) || e.means(err, faultNoFile) }

// ExecFailure finds in the error of a start that the command could not be
// executed, and returns a shell's exit code for that: 127 for a command that
// was not found, 126 for another. Both engines pass on the text of their OCI
// runtime: runc's has `exec: "x": …`, crun's `executable file …`.
func ExecFailure(err error) (code int, text string, ok bool) {
	text = strings.Join(strings.Fields(err.Error()), " ")
	at := strings.Index(text, `exec: "`)
	if at < 0 {
		at = strings.Index(text, "executable file")
	}
	if at < 0 {
		return 0, "", false
	}
	text = text[at:]
	if strings.Contains(text, "not found") || strings.Contains(strings.ToLower(text), "no such file") {
		return 127, text, true
	}
	return 126, text, true
}
