package launch

import (
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"
)

// An organisation's notes in an image are not replaced by those on the sandbox.
func TestAnImagesOwnNotesStay(t *testing.T) {
	const at = "/etc/claude-code/CLAUDE.md"
	for name, c := range map[string]struct {
		image fstest.MapFS
		at    string
		want  []string
	}{
		"no notes":        {fstest.MapFS{}, at, []string{notesFile, at}},
		"its own notes":   {fstest.MapFS{at[1:]: {Data: []byte("theirs")}}, at, []string{notesFile}},
		"a link":          {fstest.MapFS{at[1:]: {Mode: fs.ModeSymlink, Data: []byte("nowhere")}}, at, []string{notesFile}},
		"no place for it": {fstest.MapFS{}, "", []string{notesFile}},
	} {
		files, err := notesIn(c.image, c.at)
		var got []string
		for _, f := range files {
			got = append(got, f.Path)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}
