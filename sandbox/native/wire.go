package native

// launch is what the keeper and the init are told, in a file in memory: see writeLaunch.
type launch struct {
	Config
	// UID and GID are the user's numbers in the sandbox, which are those of this host.
	UID, GID int
	// Map is whether the keeper maps its own user: root has done that.
	Map    bool
	Filter []instruction
	Sizes  []int // of Etc and of the data of Files
}

// instruction is one of a seccomp filter.
type instruction struct {
	Op     uint16
	Jt, Jf uint8
	K      uint32
}

// Descriptors with which the keeper and the init begin.
const (
	fdLaunch  = 3 // launch
	fdControl = 4 // the init's socket to aileron
	fdStdin   = 5
	fdStdout  = 6
	fdStderr  = 7
	fdUplink  = 8 // the keeper's: Config.Sockets
	fdReady   = 8 // the init's: ends when the gateway is ready, after a byte
)

// message is one on the init's socket, to aileron or from it.
type message struct {
	// From the init: sealed (with the terminal, if there is one), began, ended, failed, refused.
	// To it: begin, signal.
	Kind   string
	Code   int    // of ended and failed
	Signal int    // of signal
	Reason string // of failed and refused
}
