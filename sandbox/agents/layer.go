package agents

import (
	"fmt"
	"strings"
)

// Layer is how an agent is put on an image that is not aileron's own: its files are copied out of its own image, and
// nothing of the other image runs. The zero value: there is no way.
type Layer struct {
	// Files are what is copied out of the agent's own image, and where to. A directory ends with a slash; a link alone
	// would be copied as what it leads to.
	Files []Copied

	// Glibc: its programs need the GNU C library, and of other shared libraries those that are named. Without it they
	// need none.
	Glibc     bool
	Libraries []string
}

// Copied is a file, or a directory with all that is in it.
type Copied struct{ From, To string }

// Recipe returns the Dockerfile of the layer: its base is the build argument BASE, and ${AGENT} stands for the agent's
// own image. It has no stage of its own, which would stay as an image without a name. It is nil if there is no way.
func (l Layer) Recipe() []byte {
	if len(l.Files) == 0 {
		return nil
	}
	var text strings.Builder
	text.WriteString("ARG BASE\nFROM ${BASE}\n")
	for _, f := range l.Files {
		fmt.Fprintf(&text, "COPY --from=${AGENT} %s %s\n", f.From, f.To)
	}
	return []byte(text.String())
}
