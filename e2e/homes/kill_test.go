package homes

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/e2e/must"
)

// changes are the commands of the storm. Those that open the vault take their
// time for it, and are killed when they begin to act.
var changes = [][]string{
	{"connector", "install", "../../examples/connectors/github", "--yes"},
	{"connector", "install", "../../examples/connectors/anthropic", "--yes"},
	{"connector", "remove", "github://alrubinger/aileron-connector-github"},
	{"connector", "install", "../../examples/connectors/openai", "--yes"},
	{"vault", "lock"},
	{"connector", "remove", "github://alrubinger/aileron-connector-anthropic"},
	{"binding", "revoke", echoWork, "--yes"},
	{"connector", "remove", "github://alrubinger/aileron-connector-openai"},
	{"vault", "unlock"},
	{"connector", "remove", echoFQN},
	{"connector", "install", echoDir, "--yes"},
	{"binding", "setup", echoFQN, "--identity", "work", "--secret-stdin"},
}

// Whatever is in force has an event, wherever a command was killed, and the
// next command knows whether it had acted.
func TestWhatIsInForceHasAnEventWhereverACommandIsKilled(t *testing.T) {
	u := newUser(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for round := range 48 {
		args := changes[round%len(changes)]
		killed := u.killed(random, args)
		u.explained(fmt.Sprintf("round %d: %q, killed %v", round, args, killed), false)
		u.must("session", "list")
		u.explained(fmt.Sprintf("round %d: %q, killed %v, settled", round, args, killed), true)
	}
	u.must("audit", "verify")
}

// killed runs a command and kills it at a moment of the draw: early, or a
// little after it begins to act.
func (u *user) killed(random *rand.Rand, args []string) bool {
	u.t.Helper()
	cmd := u.command(secret+"\n", args...)
	must.Do(u.t, cmd.Start())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	if random.IntN(6) > 0 {
		u.begins(ended)
	}
	select {
	case <-ended:
	case <-time.After(time.Duration(random.IntN(40_000)) * time.Microsecond):
	}
	_ = cmd.Process.Kill()
	<-ended
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// begins waits until a command has written down what it is about to do, or has
// ended.
func (u *user) begins(ended <-chan struct{}) {
	u.t.Helper()
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	limit := time.After(patience)
	for {
		if list, _ := filepath.Glob(filepath.Join(u.home, "changes", "*.json")); len(list) > 0 {
			return
		}
		select {
		case <-ended:
			return
		case <-limit:
			u.t.Fatal("the command neither acts nor ends")
		case <-tick.C:
		}
	}
}

// standing is the state of one thing in the log: whether it is in force, and
// whether an intent makes that uncertain.
type standing struct{ inForce, open bool }

// explained compares what is in force with the log. settled is when no intent
// may be left without an outcome.
func (u *user) explained(when string, settled bool) {
	u.t.Helper()
	log := map[string]standing{}
	for _, r := range u.rows() {
		key, _ := r.Fields["hash"].(string)
		switch {
		case r.Binding != "":
			key = r.Binding
		case strings.HasPrefix(string(r.Event), "vault.lock"), strings.HasPrefix(string(r.Event), "vault.unlock"):
			key = "locked"
		}
		s := log[key]
		s.open = strings.HasSuffix(string(r.Event), ".started")
		switch r.Event {
		case "connector.installed", "binding.created", "vault.locked":
			s.inForce = true
		case "connector.removed", "binding.revoked", "vault.unlocked":
			s.inForce = false
		}
		log[key] = s
	}
	for key, s := range log {
		if key == "" { // the vault as such
			continue
		}
		there := u.inForce(key)
		if there != s.inForce && !s.open || settled && s.open {
			u.t.Errorf("%s: %s is in force: %v, and the log has %+v", when, key, there, s)
		}
	}
	dirs := must.Get(os.ReadDir(filepath.Join(u.home, "store/connectors/sha256")))(u.t)
	for _, d := range dirs {
		if _, known := log["sha256:"+d.Name()]; !known {
			u.t.Errorf("%s: %s is installed without an event", when, d.Name())
		}
	}
}

// inForce reports whether a connector, a binding or the lock is there.
func (u *user) inForce(key string) bool {
	u.t.Helper()
	path := filepath.Join("vault/bindings", key+".json")
	switch {
	case key == "locked":
		path = "vault/locked"
	case strings.HasPrefix(key, "sha256:"):
		path = filepath.Join("store/connectors/sha256", strings.TrimPrefix(key, "sha256:"))
	}
	_, err := os.Lstat(filepath.Join(u.home, path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		u.t.Fatal(err)
	}
	return err == nil
}
