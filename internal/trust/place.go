package trust

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/imagefs"
)

// put adds a file where the image's links lead, once. Parents that do not exist
// are added before it.
func (in *installer) put(name string, data []byte) { in.putFile(name, 0, data) }

// putFile is put with a mode; 0 is 0644.
func (in *installer) putFile(name string, mode fs.FileMode, data []byte) {
	place := in.find(name)
	to := "/" + place.Path
	switch {
	case in.err != nil || in.taken[to]:
		return
	case in.mounted(to):
		in.refuse(name, fmt.Errorf("its links lead to %s, where the sandbox has something else", to))
		return
	case place.Exists() && !place.Info.Mode().IsRegular():
		in.refuse(name, errors.New("it is not a file, and the session's CA has to stand there"))
		return
	}
	for _, dir := range place.Missing {
		in.add(File{Path: "/" + dir, Mode: fs.ModeDir | 0o755})
	}
	in.add(File{Path: to, Mode: cmp.Or(mode, 0o644), Data: data})
}

func (in *installer) add(f File) {
	if !in.taken[f.Path] {
		in.taken[f.Path] = true
		in.files = append(in.files, f)
	}
}

// find returns where a name of the image leads.
func (in *installer) find(name string) imagefs.Place {
	if in.err != nil {
		return imagefs.Place{}
	}
	place, err := imagefs.Resolve(in.image, inFS(name))
	if err != nil {
		in.refuse(name, err)
	}
	return place
}

func (in *installer) has(name string) bool { return in.find(name).Exists() }

func (in *installer) read(name string) ([]byte, error) { return imagefs.ReadFile(in.image, inFS(name)) }

// inFS is an absolute name in the form of io/fs.
func inFS(name string) string { return strings.TrimPrefix(name, "/") }

// mounted reports whether the sandbox has something else at a path.
func (in *installer) mounted(path string) bool {
	for _, dir := range in.options.Mounted {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// refuse ends the installation: a file of the image stands in the way.
func (in *installer) refuse(name string, cause error) {
	in.fail(hint.New(&Error{name, withoutPath(cause)},
		"rebuild the image with its distribution's ca-certificates package as it is, or without %s", name))
}

// withoutPath strips the path of an error of package fs: it is named already.
func withoutPath(err error) error {
	if outer, ok := errors.AsType[*fs.PathError](err); ok {
		return outer.Err
	}
	return err
}

func (in *installer) fail(err error) {
	if in.err == nil {
		in.err = err
	}
}
