package imagefs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"
)

const (
	maxLinks    = 40  // as the Linux kernel has it: path_resolution(7)
	maxElements = 512 // of a name and of all links that it leads through
)

// ErrLoop is returned for a name that leads through too many links.
var ErrLoop = errors.New("its links lead in a circle")

// Place is where a name of an image leads.
type Place struct {
	Path    string      // free of links, in the form of io/fs: "usr/lib/os-release"
	Info    fs.FileInfo // of Path; nil if nothing is there
	Missing []string    // parents of Path that do not exist, outermost first
}

// Exists reports whether the image has something at the place.
func (p Place) Exists() bool { return p.Info != nil }

// Resolve follows every symbolic link in name, the last element included, and
// returns the place that it leads to. A name that leads to nothing is no error:
// its place is where a file of that name would be created. Links never lead out
// of fsys; those that lead in a circle are an ErrLoop.
func Resolve(fsys fs.ReadLinkFS, name string) (Place, error) {
	if !fs.ValidPath(name) {
		return Place{}, &fs.PathError{Op: "resolve", Path: name, Err: fs.ErrInvalid}
	}
	place, err := walk(name, func(at string) (fs.FileInfo, string, error) {
		info, err := fsys.Lstat(at)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return info, "", err
		}
		link, err := fsys.ReadLink(at)
		return info, link, err
	})
	if err != nil {
		return Place{}, &fs.PathError{Op: "resolve", Path: name, Err: cause(err)}
	}
	return place, nil
}

// ReadFile returns the contents of the file that name leads to, as by [Resolve].
// It refuses everything but a regular file of at most 8 MiB.
func ReadFile(fsys fs.ReadLinkFS, name string) ([]byte, error) {
	place, err := Resolve(fsys, name)
	switch {
	case err != nil:
		return nil, err
	case !place.Exists():
		err = fs.ErrNotExist
	default:
		err = readable(place.Info)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return fs.ReadFile(fsys, place.Path)
}

// lookup describes a name whose parents are free of links. If the name is a link,
// it returns the target as well.
type lookup func(name string) (info fs.FileInfo, link string, err error)

// walk resolves a name element by element: path_resolution(7).
func walk(name string, look lookup) (Place, error) {
	w := walker{look: look, at: ".", todo: strings.Split(name, "/")}
	for w.elements = 0; len(w.todo) > 0; w.elements++ {
		if w.elements > maxElements {
			return Place{}, fmt.Errorf("links to a path of more than %d elements", maxElements)
		}
		element := w.todo[0]
		w.todo = w.todo[1:]
		if err := w.step(element); err != nil {
			return Place{}, err
		}
	}
	if w.info == nil && !w.absent(w.at) { // it ended in "." or ".."
		info, _, err := w.find(w.at)
		if err != nil {
			return Place{}, err
		}
		w.info = info
	}
	return Place{Path: w.at, Info: w.info, Missing: w.missing}, nil
}

type walker struct {
	look            lookup
	at              string      // resolved so far
	info            fs.FileInfo // of at; nil: nothing there, or not looked up
	todo            []string    // elements to come
	missing         []string
	links, elements int
}

func (w *walker) step(element string) error {
	switch element {
	case "", ".":
		return nil
	case "..":
		w.at, w.info = path.Dir(w.at), nil // the parent of "." is "."
		return nil
	}
	next := path.Join(w.at, element)
	info, link, err := w.find(next)
	switch {
	case err != nil:
		return err
	case info == nil:
		if len(w.todo) > 0 {
			w.missing = append(w.missing, next)
		}
	case info.Mode()&fs.ModeSymlink != 0:
		return w.follow(link)
	case len(w.todo) > 0 && !info.IsDir():
		return fmt.Errorf("/%s is not a directory", next)
	}
	w.at, w.info = next, info
	return nil
}

// find looks a name up, unless a parent of it is known to be absent.
func (w *walker) find(name string) (fs.FileInfo, string, error) {
	if w.absent(name) {
		return nil, "", nil
	}
	info, link, err := w.look(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	return info, link, err
}

func (w *walker) absent(name string) bool {
	last := len(w.missing) - 1
	return last >= 0 && below(name, w.missing[last])
}

func (w *walker) follow(link string) error {
	if w.links++; w.links > maxLinks {
		return ErrLoop
	}
	if !utf8.ValidString(link) { // names of io/fs are UTF-8
		return errors.New("it leads through a link that is not UTF-8")
	}
	if path.IsAbs(link) {
		w.at = "."
	}
	w.info = nil
	w.todo = append(strings.Split(link, "/"), w.todo...)
	return nil
}

// below reports whether name is dir or lies in it.
func below(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// cause strips the operation and the path that an error of package fs names:
// its caller names them.
func cause(err error) error {
	if outer, ok := errors.AsType[*fs.PathError](err); ok {
		return outer.Err
	}
	return err
}
