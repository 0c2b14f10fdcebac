// Package sandbox runs a command in a sealed box: a container that has no
// network but the loopback device, shared with a gateway that carries every
// connection to one unix socket of the host.
//
// It knows engines, images and containers, and nothing of proxies: what
// stands behind the socket is its caller's. It drives Podman and Docker
// through the Docker API. Whatever happens, a run leaves no container behind;
// what a killed process left, Sweep finds by label.
package sandbox

// Workspace is where the project stands in a box.
const Workspace = "/home/agent/workspace"

// Labels by which Sweep finds containers.
const (
	labelSession = "aileron.session"
	labelRole    = "aileron.role"
	labelOwner   = "aileron.owner"

	// nobody is the session of a container that only lends its image's files.
	nobody = "none"
)
