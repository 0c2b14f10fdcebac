package sandbox

import (
	"errors"
	"net"
	"path/filepath"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// A caller that gives up before the engine is found learns why there is none, and does not wait for one that hangs.
func TestAnEngineThatIsNotFoundInTimeIsNotWaitedFor(t *testing.T) {
	socket := filepath.Join(must.ShortDir(t), "d.sock")
	t.Setenv("DOCKER_HOST", "unix://"+socket)
	spec := Spec{Engine: "docker"}
	if err := Begin(t.Context(), spec).Close(); !errors.As(err, new(*engine.FindError)) {
		t.Errorf("without an engine: %v, want why there is none", err)
	}
	l := must.Get(net.Listen("unix", socket))(t) // takes calls, and never answers
	defer l.Close()
	if err := Begin(t.Context(), spec).Close(); err != nil {
		t.Errorf("of an engine that hangs: %v, want nothing", err)
	}
	if err := Begin(t.Context(), Spec{Engine: Native}).Close(); err != nil {
		t.Errorf("without an engine: %v", err)
	}
}
