package sandbox

// Runtimes returns what can run the sandbox of a session: the engines of [Kinds], and [Native].
func Runtimes() []string { return append(Kinds(), Native) }

// Kinds returns the names of engines that [Find] takes: auto is the first that responds.
func Kinds() []string { return []string{"auto", "podman", "docker"} }
