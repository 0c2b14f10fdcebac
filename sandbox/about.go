package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/docker/docker/api/types/system"
)

// about is what an engine says about itself.
type about struct {
	system.Info
	Rootless bool // Podman's word for it; Docker's is a security option
}

// about asks the engine once: Podman runs a program for each of its parts to
// find out.
func (e *Engine) about(ctx context.Context) (about, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.info != nil {
		return *e.info, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, engineURL(e.cli, "/info"), nil)
	if err != nil {
		return about{}, err
	}
	res, err := e.cli.HTTPClient().Do(req)
	if err != nil {
		return about{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	if err != nil {
		return about{}, err
	}
	var info about
	if res.StatusCode != http.StatusOK || json.Unmarshal(body, &info) != nil {
		return about{}, fmt.Errorf("%s: %.200s", res.Status, body)
	}
	e.info = &info
	return info, nil
}
