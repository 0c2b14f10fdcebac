// Package sandbox runs a command in a sealed sandbox: a container that has no
// network but the loopback device, shared with a gateway that carries every
// connection to one unix socket of the host.
//
// [Prepare] finds an engine and makes the image ready, and [Prepared.Run] runs
// the command and returns its exit code:
//
//	p, err := sandbox.Prepare(ctx, sandbox.Spec{Engine: "auto", Image: image, Build: "auto", Dir: dir,
//		Command: []string{"sh"}, UplinkRoot: sockets, Alive: alive, Progress: os.Stderr, Log: log})
//	if err != nil {
//		return err
//	}
//	defer p.Close()
//	code, err := p.Run(ctx, sandbox.Uplink{Session: id, Sockets: sockets, Binary: aileron, Stdout: os.Stdout})
//
// [Prepared.Sealed] reports whether the sandbox can be sealed. One that cannot
// has the engine's own network, so its caller decides whether to run it.
//
// The package decides what the containers of a sandbox are; package engine makes
// and watches them. It knows nothing of proxies: what listens on the sockets is
// the caller's. Run leaves no container behind unless the engine goes away, and
// [Engine.Sweep] finds by label what a killed process left.
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
