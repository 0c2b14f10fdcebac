package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

// listed is a container of aileron's.
type listed struct {
	ID      string `json:"Id"`
	Labels  map[string]string
	Names   []string
	State   string
	Created time.Time
}

// role is the container's part; "" for one of which only its files are left.
func (l listed) role() string { return l.Labels[labelRole] }

// namePrefix is that of every container's name.
const namePrefix = "aileron-"

// lookName names a container that only lends its image's files.
func lookName() string { return namePrefix + nobody + "-" + strings.ToLower(rand.Text()) }

// forgotten is how old files must be whose container nobody knows: they are
// made before it is written down.
const forgotten = 2 * time.Minute

// ours reports whether a container has a name of aileron's. Labels prove
// nothing: a container has those of its image, which may be anybody's.
func (l listed) ours() bool {
	return slices.ContainsFunc(l.Names, func(name string) bool { return strings.HasPrefix(strings.TrimPrefix(name, "/"), namePrefix) })
}

// list gives the containers that carry our labels, and on Podman the files of
// those that carry our names and whose records an engine that was killed did
// not write, or has removed already.
func (e *Engine) list(ctx context.Context) ([]listed, error) {
	if e.kind != "podman" {
		found, err := e.cli.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelSession))})
		if err != nil {
			return nil, fmt.Errorf("list the boxes: %w", err)
		}
		var all []listed
		for _, c := range found {
			all = append(all, listed{ID: c.ID, Labels: c.Labels, Names: c.Names})
		}
		return all, nil
	}
	// Podman 4: Docker's call fails as a whole, for all containers, while one
	// is half removed.
	labelled, err := e.listPodman(ctx, url.Values{"all": {"true"}, "filters": {`{"label":["` + labelSession + `"]}`}})
	if err != nil {
		return nil, err
	}
	all, err := e.listPodman(ctx, url.Values{"all": {"true"}, "external": {"true"}})
	if err != nil {
		return labelled, nil //nolint:nilerr // what is being removed right now makes it fail; the next sweep has it
	}
	for _, c := range all {
		if c.role() == "" && strings.EqualFold(c.State, "storage") && c.ours() && time.Since(c.Created) > forgotten {
			labelled = append(labelled, c)
		}
	}
	return labelled, nil
}

func (e *Engine) listPodman(ctx context.Context, query url.Values) ([]listed, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://podman/v4.0.0/libpod/containers/json?"+query.Encode(), nil)
	if err != nil {
		return nil, fmt.Errorf("list the boxes: %w", err)
	}
	res, err := e.cli.HTTPClient().Do(req)
	if err != nil {
		return nil, fmt.Errorf("list the boxes: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return nil, fmt.Errorf("list the boxes: %w", err)
	}
	var all []listed
	if res.StatusCode != http.StatusOK || json.Unmarshal(body, &all) != nil {
		return nil, fmt.Errorf("list the boxes: %s: %.200s", res.Status, body)
	}
	return all, nil
}
