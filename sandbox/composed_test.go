package sandbox

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// On an engine with root's rights a user of the sandbox is the same user of this host, for what it leaves there.
func TestAProjectChoosesNoOtherUserOfThisHost(t *testing.T) {
	e, _ := recorder(t, "docker", container.Config{})
	plantLists(t, e, "", "")
	owner := os.Getuid()
	for _, c := range []struct {
		user string
		keep bool
		mode os.FileMode
		want string // of the error, or the user
	}{
		{strconv.Itoa(owner + 1), true, 0o755, "could leave set-user-ID programs of that user"},
		{strconv.Itoa(owner+1) + ":" + strconv.Itoa(owner), true, 0o777, "could leave set-user-ID programs of that user"},
		{strconv.Itoa(owner), true, 0o755, strconv.Itoa(owner) + ":" + strconv.Itoa(os.Getgid())},
		{strconv.Itoa(owner + 1), false, 0o777, strconv.Itoa(owner) + ":" + strconv.Itoa(os.Getgid())},
	} {
		b := anyBox(t)
		must.Do(t, os.MkdirAll(b.Dir, 0o755))
		must.Do(t, os.Chmod(b.Dir, c.mode))
		b.Composed = &Composition{User: c.user, KeepUser: c.keep}
		as, err := e.boxUser(t.Context(), b, engine.Image{})
		if strings.Contains(c.want, " ") {
			if err == nil || !strings.Contains(err.Error(), c.want) || hint.Of(err) == "" {
				t.Errorf("%+v: %+v, %v", c, as, err)
			}
		} else if err != nil || as.user != c.want {
			t.Errorf("%+v: %+v, %v", c, as, err)
		}
	}
	if err := checkKept(engine.Host{Remapped: true}, "root", 0, 1000); err != nil {
		t.Errorf("in a user namespace: %v", err)
	}
	if err := checkKept(engine.Host{}, "root", 0, 1000); err == nil ||
		!strings.Contains(err.Error(), `the user "root" of the image: its number is 0, and that of the project's owner is `+
			"1000; on this engine it would be user 0 of this host") {
		t.Errorf("root: %v", err)
	}
}
