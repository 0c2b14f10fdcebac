package imagefs

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
)

// kept is what is written of an FS.
type kept struct {
	Etc   map[string]keptNode
	Known map[string]keptNode // outside of /etc, as far as it was asked for
}

// keptNode is a Node, or the absence of one.
type keptNode struct {
	Mode   fs.FileMode
	Size   int64
	Link   string
	Data   []byte
	Kept   bool
	Absent bool
}

// Save writes what is known of an image, for [Load]. An image that is named by
// its digest does not change.
func (f *FS) Save(w io.Writer) error {
	out := kept{Etc: map[string]keptNode{}, Known: map[string]keptNode{}}
	for name, n := range f.etc.nodes {
		out.Etc[name] = keptNode{Mode: n.Mode, Size: n.Size, Link: n.Link, Data: n.data, Kept: n.kept}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, a := range f.known {
		out.Known[name] = keptNode{Mode: a.node.Mode, Size: a.node.Size, Link: a.node.Link, Absent: a.err != nil}
	}
	return gob.NewEncoder(w).Encode(out)
}

// Load reads what [FS.Save] has written. What is not known is asked of source.
func Load(r io.Reader, source Source) (*FS, error) {
	var in kept
	if err := gob.NewDecoder(r).Decode(&in); err != nil {
		return nil, fmt.Errorf("read what is known of an image: %w", err)
	}
	etc := Tree{nodes: map[string]Node{}, children: map[string][]string{}}
	for name, n := range in.Etc {
		if !fs.ValidPath(name) {
			return nil, errors.New("read what is known of an image: a name is not valid")
		}
		etc.nodes[name] = Node{Mode: n.Mode, Size: n.Size, Link: n.Link, data: n.Data, kept: n.Kept}
	}
	etc.list()
	f := New(etc, source)
	for name, n := range in.Known {
		a := answer{node: Node{Mode: n.Mode, Size: n.Size, Link: n.Link}}
		if n.Absent {
			a.err = fs.ErrNotExist
		}
		f.known[name] = a
	}
	return f, nil
}

// With returns the file system with another source for what is not known yet.
func (f *FS) With(source Source) *FS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &FS{etc: f.etc, source: source, known: maps.Clone(f.known)}
}

// Known returns how many names outside of /etc are known.
func (f *FS) Known() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.known)
}

// Ask returns what the source has under a name, whose parents may be links that
// the source itself follows. Of a name in /etc, [FS.Lstat] knows more.
func (f *FS) Ask(name string) (Node, error) {
	if f.source.Lstat == nil || !fs.ValidPath(name) {
		return Node{}, fs.ErrInvalid
	}
	return f.lstatSource(name)
}
