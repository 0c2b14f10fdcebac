package native

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// refused begins the line of a keeper that could not set up what is its.
const refused = "refused: "

// startRefusal returns the error of a keeper that could not be started.
func startRefusal(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS),
		errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		return refusal("make its namespaces: " + errorOf(err))
	}
	return fmt.Errorf("start the sandbox: %w", err)
}

// errorOf is an error without the path of this program.
func errorOf(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

// useEngine is what to do where nothing else helps.
const useEngine = "use an engine: --sandbox=podman or --sandbox=docker"

// refusal returns the [Refusal] of a step that failed, with what this host says about why.
func refusal(step string) *Refusal { return explain(step, host()) }

// facts are what this host says about namespaces.
type facts struct {
	root           bool   // this process is user 0
	namespaces     bool   // the kernel has user namespaces
	max            string // user.max_user_namespaces
	unprivileged   string // kernel.unprivileged_userns_clone, of Debian's kernels
	apparmor       string // kernel.apparmor_restrict_unprivileged_userns
	container, pod bool   // this is one
}

func host() facts {
	return facts{
		root: os.Geteuid() == 0, namespaces: exists("/proc/self/ns/user"),
		max:          setting("/proc/sys/user/max_user_namespaces"),
		unprivileged: setting("/proc/sys/kernel/unprivileged_userns_clone"),
		apparmor:     setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		container:    inContainer(), pod: os.Getenv("KUBERNETES_SERVICE_HOST") != "",
	}
}

// explain is [refusal] on a host of which that is known. A container is not told to change what only its host can.
func explain(step string, of facts) *Refusal {
	denied := strings.Contains(step, unix.EPERM.Error()) || strings.Contains(step, unix.EACCES.Error())
	contained := of.container || of.pod
	for _, c := range []struct {
		holds          bool
		reason, remedy string
	}{
		{!of.namespaces, "this kernel has no user namespaces", useEngine},
		{of.max == "0", "user namespaces are switched off (user.max_user_namespaces is 0)",
			"sudo sysctl user.max_user_namespaces=15000"}, // which fails in most containers, and says so
		{denied && of.pod, "this is a Pod of Kubernetes, whose runtime does not let it make sandboxes of its own",
			"run aileron on a host, or the agent in a Pod beside the proxy: aileron kube render --help"},
		{denied && contained, "this is a container, whose engine does not let it make sandboxes of its own",
			"run aileron on the host of this container, or with an engine: --sandbox=podman or --sandbox=docker"},
		{of.unprivileged == "0" && !of.root,
			"user namespaces are switched off (kernel.unprivileged_userns_clone is 0)",
			"sudo sysctl kernel.unprivileged_userns_clone=1"},
		{of.apparmor == "1" && !of.root && denied,
			"AppArmor lets only programs with a profile make user namespaces " +
				"(kernel.apparmor_restrict_unprivileged_userns is 1)",
			"aileron sandbox apparmor | sudo tee /etc/apparmor.d/aileron >/dev/null && " +
				"sudo apparmor_parser -r /etc/apparmor.d/aileron"},
		{strings.Contains(step, unix.ENOSPC.Error()) || strings.Contains(step, unix.EUSERS.Error()),
			"this user has as many namespaces as it may (sysctl user), or they are nested too deeply",
			"end other sandboxes, or raise the limits of /proc/sys/user"},
	} {
		if c.holds {
			return &Refusal{Reason: c.reason + ": " + step, Remedy: c.remedy}
		}
	}
	return &Refusal{Reason: step, Remedy: useEngine}
}

func setting(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// inContainer reports whether this process is in a container of an engine that says so.
func inContainer() bool {
	if exists("/.dockerenv") || exists("/run/.containerenv") || os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return true
	}
	data, err := os.ReadFile("/proc/1/environ") // of another user, unless this is root
	return err == nil && bytes.Contains(append([]byte{0}, data...), []byte("\x00container="))
}
