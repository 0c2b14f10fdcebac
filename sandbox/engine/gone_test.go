package engine

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
)

// A connection that breaks is named as the engine's end only where the engine
// has ended.
func TestAnEngineThatHasEndedIsNamed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	cli, p, err := dial("docker", "tcp://"+strings.TrimPrefix(server.URL, "http://"), Patience{})
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{dialect: docker{}, cli: cli, liveness: p}
	defer e.Close()
	broken := []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE}
	for _, cause := range broken {
		err := fmt.Errorf("make a container: %w", cause)
		if e.Explain(&err); !errors.Is(err, cause) {
			t.Errorf("the engine lives, and %v became %v", cause, err)
		}
	}
	server.Close()
	for _, cause := range broken {
		err := fmt.Errorf("make a container: %w", cause)
		const want = "prepare the sandbox: docker does not respond on its socket any more"
		if e.Explain(&err); !errors.Is(err, ErrEngine) || err.Error() != want {
			t.Errorf("the engine has ended, and %v became %v", cause, err)
		}
	}
	other := errors.New("no such image")
	err = other
	if e.Explain(&err); err != other {
		t.Errorf("an error of another kind became %v", err)
	}
}
