package hint_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/ALRubinger/aileron/internal/hint"
)

func ExampleNew() {
	err := hint.New(errors.New("vault not initialised"), "aileron vault init")
	err = fmt.Errorf("start the session: %w", err)

	fmt.Println(err)
	fmt.Println("hint:", hint.Of(err))
	// Output:
	// start the session: vault not initialised
	// hint: aileron vault init
}

func TestOf(t *testing.T) {
	plain := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}
	inner := hint.New(plain, "create %s", "x")
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"no error", nil, ""},
		{"no hint", plain, ""},
		{"formatted", inner, "create x"},
		{"wrapped", fmt.Errorf("start: %w", inner), "create x"},
		{"joined", errors.Join(errors.New("another"), inner), "create x"},
		{"the outermost wins", hint.New(fmt.Errorf("start: %w", inner), "start again"), "start again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := hint.Of(c.err); got != c.want {
				t.Errorf("Of(%v) = %q, want %q", c.err, got, c.want)
			}
		})
	}
}

func TestNewKeepsTheError(t *testing.T) {
	if err := hint.New(nil, "do something"); err != nil {
		t.Errorf("New(nil) = %v, want nil", err)
	}
	err := hint.New(&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}, "100%% sure")
	if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, new(*fs.PathError)) {
		t.Errorf("New hides %v from errors.Is or errors.As", err)
	}
	if got, want := err.Error(), "open x: file does not exist"; got != want {
		t.Errorf("New changed the text of the error to %q, want %q", got, want)
	}
}
