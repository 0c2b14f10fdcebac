package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ALRubinger/aileron/sandbox/agents"
)

// useSandbox puts in force what is about the sandbox.
func (u *projectUse) useSandbox(s *sandboxOptions, dir string) error {
	if name := u.file.Agent; name != "" {
		if _, ok := agents.Find(name); !ok {
			return fmt.Errorf("there is no agent %q; known: %s", name, agentNames())
		}
	}
	if u.file.ReadOnly && !s.readOnly {
		s.readOnly = true
		u.inForce = append(u.inForce, "read-only")
	}
	if u.file.Protect && !s.protect {
		s.protect = true
		u.inForce = append(u.inForce, "protect")
	}
	if s.image != "" { // a person's own, to which nothing is added
		return nil
	}
	for _, name := range u.file.Packages {
		if slices.Contains(s.custom.packages, name) {
			continue
		}
		s.custom.packages = append(s.custom.packages, name)
		u.inForce = append(u.inForce, "package "+name)
		u.widens = append(u.widens,
			"install the Debian package "+name+" in the image, with the network of the engine's machine")
	}
	return u.useDockerfile(s, dir)
}

// useDockerfile puts a Dockerfile in force. Its content is asked about when it is built.
func (u *projectUse) useDockerfile(s *sandboxOptions, dir string) error {
	name := u.file.Dockerfile
	if name == "" || s.custom.dockerfile != "" {
		return nil
	}
	u.inForce = append(u.inForce, "dockerfile "+name)
	if name == "off" {
		s.custom.dockerfile = name
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	// No link on its way leads out of the project.
	if _, err := root.Lstat(name); err != nil {
		return fmt.Errorf("read the Dockerfile: %w", err)
	}
	s.custom.dockerfile = filepath.Join(dir, name)
	u.widens = append(u.widens, "build the image of "+name+" in the project")
	return nil
}
