package project

import (
	"fmt"
	"slices"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/sandbox/agents"
)

// useSandbox puts in force what is about the sandbox.
func (u *Use) useSandbox(s *Sandbox, dir, home string) error {
	if u.File.ReadOnly && !s.ReadOnly {
		s.ReadOnly = true
		u.InForce = append(u.InForce, "read-only")
	}
	if u.File.Protect && !s.Protect {
		s.Protect = true
		u.InForce = append(u.InForce, "protect")
	}
	if err := u.useShared(s, dir, home); err != nil {
		return err
	}
	return u.useImage(s, dir)
}

// useImage puts in force what is about the image.
func (u *Use) useImage(s *Sandbox, dir string) error {
	if name := u.File.Agent; name != "" {
		if _, ok := agents.Find(name); !ok {
			return fmt.Errorf("there is no agent %q; known: %s", name, hint.Listed(agents.Names()))
		}
	}
	if s.Image != "" { // a person's own, to which nothing is added
		if len(u.File.Packages) > 0 || u.File.Dockerfile != "" {
			u.overruled = append(u.overruled, "packages and dockerfile")
		}
		return nil
	}
	for _, name := range u.File.Packages {
		if slices.Contains(s.Custom.Packages, name) {
			continue
		}
		s.Custom.Packages = append(s.Custom.Packages, name)
		u.InForce = append(u.InForce, "package "+name)
		u.widen("install the Debian package " + name + " in the image, with the network of the engine's machine")
	}
	return u.useDockerfile(s, dir)
}

// useDockerfile puts a Dockerfile in force. Its content is asked about when it is built.
func (u *Use) useDockerfile(s *Sandbox, dir string) error {
	name := u.File.Dockerfile
	if name == "" {
		return nil
	}
	if s.Custom.Dockerfile != "" {
		u.overruled = append(u.overruled, "dockerfile")
		return nil
	}
	u.InForce = append(u.InForce, "dockerfile "+name)
	if name == "off" {
		s.Custom.Dockerfile = name
		return nil
	}
	s.Custom.Dockerfile, s.Custom.within = name, dir
	// An error now, and not after the question.
	if _, err := s.Custom.readWithin(); err != nil {
		return fmt.Errorf("read the Dockerfile %s: %w", name, err)
	}
	u.widen("build the image of " + name + " in the project")
	return nil
}
