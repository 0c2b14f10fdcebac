package engine

import (
	"archive/tar"
	"bytes"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/client"

	"github.com/ALRubinger/aileron/e2e/must"
)

// What an archive does not state is not taken for nothing.
func TestTriggersAreReadFromAnArchive(t *testing.T) {
	const layer, config = "layer.tar", "0123.json"
	for name, c := range map[string]struct {
		files [][2]string
		want  []string
		fault string
	}{
		"with some": {[][2]string{{layer, "x"}, {config, `{"config":{"OnBuild":["RUN id"]}}`}}, []string{"RUN id"}, ""},
		"without":   {[][2]string{{"manifest.json", "[]"}, {config, `{"config":{}}`}}, nil, ""},
		"none":      {[][2]string{{layer, "x"}, {"manifest.json", "[]"}}, nil, "no configuration"},
		"another":   {[][2]string{{config, `{"layers":[]}`}}, nil, "it is no configuration"},
		"cut":       {[][2]string{{config, `{"config":{"OnBuild":["RUN id"]`}}, nil, "it is no configuration"},
		"a layer's": {[][2]string{{"a/json.json", `{"config":{}}`}}, nil, "no configuration"},
	} {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		for _, f := range c.files {
			must.Do(t, w.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))}))
			must.Get(w.Write([]byte(f[1])))(t)
		}
		must.Do(t, w.Close())
		got, err := savedOnBuild(&archive)
		if !slices.Equal(got, c.want) || (err == nil) != (c.fault == "") ||
			err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %q, %v; want %q, %q", name, got, err, c.want, c.fault)
		}
	}
	if _, err := savedOnBuild(strings.NewReader("no archive at all")); err == nil {
		t.Error("what is no archive has no triggers")
	}
}

// Nor is what Docker does not state.
func TestTriggersAreReadFromADescription(t *testing.T) {
	for text, fault := range map[string]string{
		`{"Id":"sha256:x","Config":{"OnBuild":["RUN id"]}}`: "",
		`{"Id":"sha256:x"}`: "without a configuration",
	} {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /v1.41/images/{ref...}", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(text))
		})
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		cli := must.Get(client.NewClientWithOpts(client.WithHost(strings.Replace(server.URL, "http", "tcp", 1)),
			client.WithVersion("1.41")))(t)
		got, err := docker{}.onBuild(t.Context(), &Engine{cli: cli}, "x")
		if (err == nil) != (fault == "") || err != nil && !strings.Contains(err.Error(), fault) ||
			err == nil && !slices.Equal(got, []string{"RUN id"}) {
			t.Errorf("%s: %q, %v; want %q", text, got, err, fault)
		}
	}
}
