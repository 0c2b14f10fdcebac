package native

import (
	"strings"
	"testing"
)

// Each host that cannot seal a sandbox is told why, and what a person of that host can do.
func TestARefusalSaysWhatCanBeDoneHere(t *testing.T) {
	const denied, none = "make its namespaces: operation not permitted", "make its namespaces: no space left on device"
	for name, c := range map[string]struct {
		step                string
		of                  facts
		reason, remedy, not string
	}{
		"no namespaces": {"make its namespaces: invalid argument", facts{},
			"this kernel has no user namespaces", "--sandbox=podman", ""},
		"switched off": {none, facts{namespaces: true, max: "0"},
			"user.max_user_namespaces is 0", "sudo sysctl user.max_user_namespaces=15000", "container"},
		"Debian's switch": {denied, facts{namespaces: true, max: "9", unprivileged: "0"},
			"kernel.unprivileged_userns_clone is 0", "sudo sysctl kernel.unprivileged_userns_clone=1", ""},
		"Debian's switch, for root": {denied, facts{namespaces: true, max: "9", unprivileged: "0", root: true},
			denied, "--sandbox=podman", "unprivileged_userns_clone"},
		"AppArmor": {"make the mounts its own: permission denied", facts{namespaces: true, max: "9", apparmor: "1"},
			"kernel.apparmor_restrict_unprivileged_userns is 1", "aileron sandbox apparmor | sudo tee", ""},
		"another step": {"open /p: no such file or directory", facts{namespaces: true, max: "9", apparmor: "1"},
			"open /p", "--sandbox=podman", "AppArmor"},
		"a container on Ubuntu": {denied, facts{namespaces: true, max: "9", apparmor: "1", container: true},
			"this is a container", "on the host of this container", "AppArmor"},
		"a Pod": {denied, facts{namespaces: true, max: "9", container: true, pod: true},
			"this is a Pod of Kubernetes", "in a Pod beside the proxy", "sudo"},
		"too many": {none, facts{namespaces: true, max: "9"},
			"as many namespaces as it may", "/proc/sys/user", ""},
		"what is not known": {"mount /proc: no such device", facts{namespaces: true, max: "9", container: true},
			"mount /proc: no such device", "--sandbox=podman", "container"},
	} {
		got := explain(c.step, c.of)
		all := got.Reason + " " + got.Remedy
		if !strings.Contains(got.Reason, c.reason) || !strings.HasSuffix(got.Reason, c.step) ||
			!strings.Contains(got.Remedy, c.remedy) || c.not != "" && strings.Contains(all, c.not) {
			t.Errorf("%s: %q, with the hint %q", name, got.Reason, got.Remedy)
		}
	}
}
