package openapi

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec/internal/foreign"
)

// The bounds of what a document refers to.
const (
	maxDocuments  = 1000
	maxUnresolved = 3 // that an error lists
)

// Files reads the documents that a document refers to, by their slash-separated names beside it. It reads at most one
// byte more than most.
type Files func(name string, most int) ([]byte, error)

// Below returns the files of a directory: none that a name or a link leads out of it to, and none that is no file.
func Below(dir string) Files {
	return func(name string, most int) ([]byte, error) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		// A pipe would block until it is written to.
		f, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			return nil, errors.Join(errors.New("it is not a file"), err)
		}
		return io.ReadAll(io.LimitReader(f, int64(most)+1))
	}
}

// document is one of the documents that were read.
type document struct {
	name string // beside the first, whose name is ""
	root *node
}

// documents are those that the first one refers to.
type documents struct {
	read Files
	size int // bytes of all
	all  map[string]*document
	of   map[*node]*document // of objects with a reference; those of the first document are not in it

	unresolved []string // what is referred to and was not found, with the reason
	more       int
}

// fail records a reference that cannot be resolved.
func (d *documents) fail(ref, why string) {
	text := foreign.Clean(ref, 60) + " " + why
	switch {
	case slices.Contains(d.unresolved, text):
	case len(d.unresolved) == maxUnresolved:
		d.more++
	default:
		d.unresolved = append(d.unresolved, text)
	}
}

// err returns an error for references that were not resolved: an operation without what they lead to would be another.
func (d *documents) err() error {
	if len(d.unresolved) == 0 {
		return nil
	}
	text := strings.Join(d.unresolved, "; ")
	if d.more > 0 {
		text += fmt.Sprintf("; and %d more", d.more)
	}
	return hint.New(errors.New("resolve the document's references: "+text),
		"bundle the document, or select operations that need none of these with --only")
}

// open returns the document that a reference in another one names. Nothing is fetched.
func (r *reader) open(from *document, ref string) (*document, string) {
	if ref == "" {
		return from, ""
	}
	name, err := url.PathUnescape(ref)
	if err != nil || strings.ContainsAny(name, ":?\\\x00") || strings.HasPrefix(name, "/") {
		return nil, "is no file beside the document, and nothing is fetched"
	}
	name = path.Join(path.Dir(from.name), name)
	if name == ".." || strings.HasPrefix(name, "../") {
		return nil, "is not below the document's directory"
	}
	if known := r.docs.all[name]; known != nil {
		return known, ""
	}
	switch {
	case r.docs.read == nil:
		return nil, "is another document, which is not read"
	case len(r.docs.all) == maxDocuments:
		return nil, fmt.Sprintf("is one of more than %d documents", maxDocuments)
	}
	data, err := r.docs.read(name, MaxSize-r.docs.size)
	if err != nil {
		return nil, "cannot be read: " + foreign.Clean(reason(err), 100)
	}
	if r.docs.size += len(data); r.docs.size > MaxSize {
		return nil, fmt.Sprintf("makes more than %d bytes of documents", MaxSize)
	}
	if r.docs.all == nil {
		r.docs.all, r.docs.of = map[string]*document{}, map[*node]*document{}
	}
	doc := &document{name: name}
	b := &builder{notes: &r.notes, refs: func(n *node) { r.docs.of[n] = doc }}
	if doc.root, err = b.parse(data); err != nil {
		return nil, "cannot be read: " + foreign.Clean(err.Error(), 100)
	}
	r.docs.all[name] = doc
	return doc, ""
}

// reason returns an error of the file system without its path.
func reason(err error) string {
	if p := (*os.PathError)(nil); errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}
