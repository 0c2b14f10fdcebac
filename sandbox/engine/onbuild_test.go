package engine

import (
	"archive/tar"
	"bytes"
	"slices"
	"strings"
	"testing"

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
