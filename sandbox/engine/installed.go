package engine

import (
	"os"
	"os/exec"
	"runtime"
)

// Installed reports whether an engine seems to be installed, or is configured. It need not respond.
func Installed() bool {
	if runtime.GOOS != "linux" {
		return true // nothing else can make a sandbox there
	}
	for _, name := range []string{"CONTAINER_HOST", "DOCKER_HOST"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	for _, name := range []string{"podman", "docker"} {
		if _, err := exec.LookPath(name); err == nil {
			return true
		}
	}
	_, err := os.Stat("/var/run/docker.sock")
	return err == nil
}
