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

// refusal returns the [Refusal] of a step that failed, with what this host says about why.
func refusal(step string) *Refusal {
	denied := strings.Contains(step, unix.EPERM.Error()) || strings.Contains(step, unix.EACCES.Error())
	for _, c := range []struct {
		holds          bool
		reason, remedy string
	}{
		{setting("/proc/sys/user/max_user_namespaces") == "0",
			"user namespaces are switched off (user.max_user_namespaces is 0)",
			"sudo sysctl user.max_user_namespaces=15000"},
		{setting("/proc/sys/kernel/unprivileged_userns_clone") == "0" && os.Geteuid() != 0,
			"user namespaces are switched off (kernel.unprivileged_userns_clone is 0)",
			"sudo sysctl kernel.unprivileged_userns_clone=1"},
		{setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && os.Geteuid() != 0,
			"AppArmor lets only programs with a profile make user namespaces " +
				"(kernel.apparmor_restrict_unprivileged_userns is 1)",
			"aileron sandbox apparmor | sudo tee /etc/apparmor.d/aileron >/dev/null && " +
				"sudo apparmor_parser -r /etc/apparmor.d/aileron"},
		{denied && inContainer(), "this is a container, whose engine does not let it make sandboxes of its own",
			"run aileron on the host, or with an engine: --sandbox=podman or --sandbox=docker"},
		{!exists("/proc/self/ns/user"), "this kernel has no user namespaces", ""},
	} {
		if c.holds {
			return &Refusal{Reason: c.reason + ": " + step, Remedy: c.remedy}
		}
	}
	return &Refusal{Reason: step, Remedy: "use an engine: --sandbox=podman or --sandbox=docker"}
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
