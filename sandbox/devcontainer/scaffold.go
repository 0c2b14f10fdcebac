package devcontainer

import (
	_ "embed" // the files
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/ALRubinger/aileron/internal/hint"
)

//go:embed scaffold/devcontainer.json
var scaffoldConfig []byte

//go:embed scaffold/Dockerfile
var scaffoldDockerfile []byte

// Scaffold writes a configuration and a Dockerfile for the project of root, with comments, and returns their paths. It
// overwrites nothing: if the project has a configuration, or one of the files, it writes none of them.
func Scaffold(root *os.Root) (written []string, err error) {
	found, err := Find(root)
	if err != nil {
		return nil, err
	}
	files := []struct {
		name string
		data []byte
	}{{path.Join(directory, "Dockerfile"), scaffoldDockerfile}, {path.Join(directory, fileName), scaffoldConfig}}
	for _, f := range files {
		if is(root, f.name) {
			found = append(found, f.name)
		}
	}
	if len(found) > 0 {
		return nil, hint.New(fmt.Errorf("write a devcontainer: the project has %s", found[0]),
			"aileron sandbox plan prints what it asks for")
	}
	if err := root.Mkdir(directory, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("write a devcontainer: %w", err)
	}
	for _, f := range files {
		if err := create(root, f.name, f.data); err != nil {
			return written, fmt.Errorf("write a devcontainer: %w", err)
		}
		written = append(written, f.name)
	}
	return written, nil
}

// create writes a new file.
func create(root *os.Root, name string, data []byte) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
