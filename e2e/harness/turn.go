package harness

import (
	"fmt"
	"hash/fnv"
	"os"
	"testing"
)

// TurnEnv names which part of the tests that are many of a kind a run makes: K/N. See [Turn].
const TurnEnv = "AILERON_TEST_TURN"

// Turn skips a test, or a part of one, that is one of many of a kind and takes long, when another run is to make it:
// `just test` makes an eighth of these, which the commit's hash chooses (AILERON_TEST_TURN, K/N), and `just whole` all.
func Turn(t testing.TB) {
	t.Helper()
	if _, n := TurnOf(); !InTurn(t.Name()) {
		t.Skipf("one of many of its kind, of which each commit's run makes one in %d: just whole", n)
	}
}

// InTurn reports whether this run makes what has that name among many of its kind.
func InTurn(name string) bool {
	k, n := TurnOf()
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int(h.Sum32()%uint32(n)) == k
}

// TurnOf returns which part of how many this run makes: 0 of 1 where it makes all.
func TurnOf() (k, n int) {
	text := os.Getenv(TurnEnv)
	if text == "" {
		return 0, 1
	}
	if _, err := fmt.Sscanf(text, "%d/%d", &k, &n); err != nil || k < 0 || k >= n {
		panic(fmt.Sprintf("%s is K/N with K from 0 to N-1, not %q", TurnEnv, text))
	}
	return k, n
}
