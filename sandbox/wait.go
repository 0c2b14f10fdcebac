package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/docker/docker/api/types/container"
)

// wait tells the exit code of a container that has been started.
func (e *Engine) wait(ctx context.Context, id string) (<-chan int, <-chan error) {
	code, fault := make(chan int, 1), make(chan error, 1)
	go func() {
		c, err := e.exitCode(ctx, id)
		if err != nil {
			fault <- err
			return
		}
		code <- c
	}()
	return code, fault
}

func (e *Engine) exitCode(ctx context.Context, id string) (int, error) {
	if e.kind != "podman" {
		ended, faults := e.cli.ContainerWait(ctx, id, container.WaitConditionNotRunning)
		select {
		case res := <-ended:
			return int(res.StatusCode), nil
		case err := <-faults:
			return 0, err
		}
	}
	// Podman 4: behind Docker's call it asks for the container's state without
	// a pause between, and takes a processor for each box.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://podman/v4.0.0/libpod/containers/"+id+"/wait?condition=stopped&condition=exited&interval=50ms", nil)
	if err != nil {
		return 0, err
	}
	res, err := e.cli.HTTPClient().Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil {
		return 0, err
	}
	var code int
	if res.StatusCode != http.StatusOK || json.Unmarshal(body, &code) != nil {
		return 0, fmt.Errorf("%s: %.200s", res.Status, body)
	}
	return code, nil
}
