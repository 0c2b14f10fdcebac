// Package native runs a command in a sealed sandbox without an engine and without root: in namespaces that this program
// makes of itself.
//
//	box, err := native.Start(ctx, native.Config{Binary: aileron, Sockets: dir, Command: []string{"/bin/sh"}, …})
//	if err != nil {
//		return err // nothing of the command has run
//	}
//	box.Begin()
//	code := <-box.Ended()
//
// Three processes make a sandbox, of the same program:
//
//	aileron            starts the keeper, and copies the command's streams
//	  keeper           process 1 of a namespace of processes, in a user namespace (outer) that owns a network
//	                   namespace, in which it is the gateway, without a privilege as soon as that is set up
//	    init           process 1 of the sandbox, in a user namespace (inner) below the outer one, so that it has no right
//	                   over the network, with its own mounts, processes, IPC, host name and control groups
//	      the command
//
// The kernel ends all processes of a namespace with its first one. So nothing of a sandbox outlives the keeper, and the
// keeper ends with aileron, however that ends.
//
// Before the command begins, the init drops all that it may do, for good, and then tries what must fail: see [look]. A
// sandbox in which any of it does not fail, does not begin. [Refusal] is the reason, for people.
//
// Open this file for what a sandbox is asked to be, start_linux.go for aileron's side, keeper_linux.go and
// init_linux.go for the other two processes, root_linux.go for the files that a sandbox sees, and look_linux.go for
// what is tried.
package native

import (
	"io/fs"
	"os"
)

// Config is a sandbox.
type Config struct {
	// Binary is the file of this program, whose main calls [RunStage].
	Binary string
	// Sockets is the directory of proxy.sock and redirect.sock, and of ports.sock if ports are published. Only the
	// gateway reaches it.
	Sockets string
	// Seccomp is the profile of the sandbox, in the form of engines.
	Seccomp string
	// Owner is the user and group as which the sandbox runs. Only root may choose one; for others it is themselves.
	Owner Owner

	// Session names the control group of the sandbox.
	Session string

	Program string   // of Command, as a path in the sandbox; "" is its first word
	Command []string // with its name
	Env     []string
	Dir     string // where the command begins
	// TTY makes the command's terminal, whose other end [Sandbox.Terminal] returns. Otherwise its three standard streams
	// are those of [Sandbox].
	TTY bool

	Etc    []byte  // what the sandbox has of this host's /etc: see [HostEtc]
	Mounts []Mount // in this order; later ones lie over earlier ones
	Masks  []string
	Files  []File // put into the sandbox before anything of it runs

	Memory    int64   // bytes; 0 is no limit
	CPUs      float64 // 0 is no limit
	Processes int     // 0 is no limit
}

// Owner is a user of this host and his group.
type Owner struct{ UID, GID int }

// Mount is a file or directory of this host in the sandbox. Devices and set-user-id programs in it have no effect.
type Mount struct {
	Source, Target string
	ReadOnly       bool
}

// Exit is the end of a command.
type Exit struct {
	Code int // 128+N if signal N ended it
	// Killed reports that the sandbox itself was killed, and with it the command.
	Killed bool
}

// File is a file, or a directory, of a sandbox.
type File struct {
	Path string // absolute and free of links
	Mode fs.FileMode
	Data []byte
}

// Home is the home directory of every sandbox. It is in memory, as /tmp, /var/tmp and /run are; all else is read-only.
const Home = "/home/agent"

// Hostname is the name of every sandbox.
const Hostname = "box"

// Names under which this program starts itself.
const (
	keeperName = "aileron-native-keeper"
	initName   = "aileron-native-init"
)

// IsStage reports whether this process is one of a sandbox's own. Its main must then call [RunStage] and nothing else.
func IsStage() bool {
	return len(os.Args) > 0 && (os.Args[0] == keeperName || os.Args[0] == initName)
}

// Refusal is returned where a sandbox cannot be sealed. Nothing of its command has run.
type Refusal struct {
	Reason string // what failed, and why, for people
	Remedy string // what to do, for people; "" is nothing that is known
}

// ErrorClass and ErrorReason are for --json.
func (*Refusal) ErrorClass() string  { return "invalid_request" }
func (*Refusal) ErrorReason() string { return "preflight_failed" }

func (e *Refusal) Error() string { return "seal the sandbox without an engine: " + e.Reason }

// Hint returns what to do, for package hint.
func (e *Refusal) Hint() string { return e.Remedy }

// CommandError is returned for a command that could not be executed. Code is what a shell would exit with.
type CommandError struct {
	Command string
	Code    int
	Reason  string
}

func (e *CommandError) Error() string { return "run " + e.Command + " in the sandbox: " + e.Reason }
