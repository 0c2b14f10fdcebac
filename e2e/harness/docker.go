package harness

import (
	"os"
	"testing"
)

// FewOnDocker reports whether this is `just test`, which runs all tests on Podman, and on Docker those of what is
// Docker's own: its dialect (package sandbox), the seal, one agent, and one day. `just whole` runs all on both.
func FewOnDocker() bool { return os.Getenv("AILERON_TEST_DOCKER") == "few" }

// PodmanIsEnough skips a test on Docker where few run there.
func PodmanIsEnough(t testing.TB, engine string) {
	t.Helper()
	if engine == "docker" && FewOnDocker() {
		t.Skip("Docker beside Podman: just whole")
	}
}
