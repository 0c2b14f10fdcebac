// Command probe is the hostile agent. It stands in the project of a box and
// tries every way out of it that its author knows, by system calls of its
// own. It prints one JSON object a line, one for each attempt, and decides
// nothing: what may come of an attempt is for the test to decide.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience is for what must not wait at all: who needs it has timed out, however busy the machine is.
const patience = 2 * time.Minute

// plan is the input from the test, which knows the host.
type plan struct {
	Name      string            // that is allowed
	Ports     []string          // on which it is
	Hosts     []string          // addresses and ports of the host's own listeners
	Abstract  string            // an abstract socket of the host
	Processes []int             // of the host
	Paths     []string          // of the host, which no box may find
	Denied    map[string]int    // system calls that the profile does not name
	Needles   map[string]string // each byte complemented, in base64: the box must not hold the needles
	Flood     bool              // ask for more names than there is room for
	Public    []string          // directories that are every user's of the host: they are not searched
}

// attempt is what came of one.
type attempt struct {
	Name    string
	Result  string  // ok, timeout, the name of an error number, or words
	Detail  string  `json:",omitempty"`
	Timeout bool    `json:",omitempty"`
	Seconds float64 // since the beginning, for people
}

var begun = time.Now()

var out = json.NewEncoder(os.Stdout)

// tell prints the outcome of an attempt: nil is a success.
func tell(name string, err error, detail ...string) {
	a := attempt{Name: name, Result: word(err), Detail: strings.Join(detail, " "), Seconds: time.Since(begun).Seconds()}
	a.Timeout = a.Result == "timeout"
	if err != nil && a.Detail == "" {
		a.Detail = err.Error()
	}
	_ = out.Encode(a)
}

// said prints an attempt that was answered in words.
func said(name, words, detail string) {

	_ = out.Encode(attempt{Name: name, Result: words, Detail: detail, Seconds: time.Since(begun).Seconds()})

}

func word(err error) string {
	var n net.Error
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &n) && n.Timeout() && !errors.Is(err, unix.EAGAIN), errors.Is(err, os.ErrDeadlineExceeded),
		errors.Is(err, unix.ETIMEDOUT), errors.Is(err, unix.EAGAIN):
		return "timeout"
	case errors.Is(err, errKilled):
		return "killed"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed"
	}
	return "error"
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "child" {
		child(os.Args[2])
		return
	}
	descriptors() // before there are any of ours
	var p plan
	data, err := os.ReadFile("plan.json")
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		tell("the plan", err)
		os.Exit(1)
	}
	said("about this box", runtime.GOARCH, identity())
	controls("before", p)
	sockets()
	datagrams()
	connections(p)
	names()
	netlink()
	unixSockets(p)
	namespaces()
	kernel(p)
	files(p)
	privileges()
	processes(p)
	mounts()
	search(p)
	if p.Flood {
		flood()
	}
	controls("after", p)
	said("the end", "ok", "")
}
