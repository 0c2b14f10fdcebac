package sandbox

// Kinds returns the names of engines that [Find] takes: auto is the first that responds.
func Kinds() []string { return []string{"auto", "podman", "docker"} }
