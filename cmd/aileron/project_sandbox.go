package main

import (
	"fmt"
	"slices"

	"github.com/ALRubinger/aileron/sandbox/agents"
)

// useSandbox puts in force what is about the sandbox.
func (u *projectUse) useSandbox(s *sandboxOptions, dir, home string) error {
	if u.file.ReadOnly && !s.readOnly {
		s.readOnly = true
		u.inForce = append(u.inForce, "read-only")
	}
	if u.file.Protect && !s.protect {
		s.protect = true
		u.inForce = append(u.inForce, "protect")
	}
	if err := u.useShared(s, dir, home); err != nil {
		return err
	}
	return u.useImage(s, dir)
}

// useImage puts in force what is about the image.
func (u *projectUse) useImage(s *sandboxOptions, dir string) error {
	if name := u.file.Agent; name != "" {
		if _, ok := agents.Find(name); !ok {
			return fmt.Errorf("there is no agent %q; known: %s", name, agentNames())
		}
	}
	if s.image != "" { // a person's own, to which nothing is added
		if len(u.file.Packages) > 0 || u.file.Dockerfile != "" {
			u.overruled = append(u.overruled, "packages and dockerfile")
		}
		return nil
	}
	for _, name := range u.file.Packages {
		if slices.Contains(s.custom.packages, name) {
			continue
		}
		s.custom.packages = append(s.custom.packages, name)
		u.inForce = append(u.inForce, "package "+name)
		u.widen("install the Debian package " + name + " in the image, with the network of the engine's machine")
	}
	return u.useDockerfile(s, dir)
}

// useDockerfile puts a Dockerfile in force. Its content is asked about when it is built.
func (u *projectUse) useDockerfile(s *sandboxOptions, dir string) error {
	name := u.file.Dockerfile
	if name == "" {
		return nil
	}
	if s.custom.dockerfile != "" {
		u.overruled = append(u.overruled, "dockerfile")
		return nil
	}
	u.inForce = append(u.inForce, "dockerfile "+name)
	if name == "off" {
		s.custom.dockerfile = name
		return nil
	}
	s.custom.dockerfile, s.custom.within = name, dir
	// An error now, and not after the question.
	if _, err := s.custom.readWithin(); err != nil {
		return fmt.Errorf("read the Dockerfile %s: %w", name, err)
	}
	u.widen("build the image of " + name + " in the project")
	return nil
}
