// Package sandbox runs a command in a sealed sandbox: a container that has no
// network but the loopback device, shared with a gateway that carries every
// connection to one unix socket of the host.
//
// It decides what the containers of a sandbox are, and knows nothing of
// proxies: what stands behind the socket is its caller's. Package engine makes
// and watches them. Whatever happens, a run leaves no container behind; what a
// killed process left, Sweep finds by label.
package sandbox

// Workspace is where the project is mounted in a sandbox.
const Workspace = "/home/agent/workspace"

// Labels by which Sweep finds containers.
const (
	labelSession = "aileron.session"
	labelRole    = "aileron.role"
	labelOwner   = "aileron.owner"

	// noSession is the session of a container in which an image's files are read.
	noSession = "none"
)
