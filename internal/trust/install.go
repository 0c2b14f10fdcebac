package trust

import (
	"bytes"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/ALRubinger/aileron/ca"
)

// Files of a session in every sandbox.
const (
	CAFile        = "/etc/aileron/proxy/ca.pem"     // the session's root alone
	BundleFile    = "/etc/aileron/proxy/bundle.pem" // the image's roots and it
	JavaStoreFile = "/etc/aileron/proxy/trust.p12"  // the roots of the image's Java and it
)

// aptSandbox makes apt stay root: in a sandbox it cannot become another user.
const aptSandbox = "// Put here by aileron: a sandbox has no capability to become _apt.\nAPT::Sandbox::User \"root\";\n"

// File is a file to put into a container, or a directory that one of them
// needs. All of them are public.
type File struct {
	Path string // absolute and free of links
	Mode fs.FileMode
	Data []byte
}

// Options describe an image beyond its files. The zero value works.
type Options struct {
	// Getenv returns a variable of the image's own environment. nil: it has none.
	Getenv func(name string) string
	// Mounted are directories where the sandbox does not see the image's files.
	// What is put there would miss the sandbox, or reach the user's project.
	Mounted []string
	// Extra are further files for the container, put where the image's links lead.
	// A Mode of 0 is 0644.
	Extra []File
	// HostRoots returns the roots for an image that has none. nil: this host's.
	HostRoots func() ([]byte, error)
	// Log receives warnings about files of the image that are not used. nil
	// discards them.
	Log *slog.Logger
}

// Install returns the files that make an image trust a root, which is in PEM. The
// error is an [Error] if a file of the image stands in the way.
func Install(image fs.ReadLinkFS, root []byte, o Options) ([]File, error) {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if o.HostRoots == nil {
		o.HostRoots = ca.SystemBundle
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	in := &installer{image: image, root: root, options: o, taken: map[string]bool{}}
	system := in.bundles()
	in.put(CAFile, root)
	in.put(BundleFile, ca.Bundle(system, root))
	in.java(system)
	in.anchors()
	in.hashLinks()
	in.chromium()
	in.firefox()
	in.apt()
	for _, f := range o.Extra {
		in.putFile(f.Path, f.Mode, f.Data)
	}
	return in.files, in.err
}

// installer collects the files for an image. After the first error its methods
// do nothing.
type installer struct {
	image   fs.ReadLinkFS
	root    []byte
	options Options
	taken   map[string]bool // paths of files
	files   []File
	err     error
}

// apt configures apt, where there is one, to work in a sandbox.
func (in *installer) apt() {
	if in.has("/etc/apt/apt.conf.d") {
		in.put("/etc/apt/apt.conf.d/99aileron", []byte(aptSandbox))
	}
}

// blank reports whether a bundle has nothing in it.
func blank(bundle []byte) bool { return len(bytes.TrimSpace(bundle)) == 0 }

// Error is returned for an image that cannot be made to trust a root.
type Error struct {
	File  string // stands in the way
	Cause error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.File, e.Cause) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// ErrorClass and ErrorReason are for --json.
func (*Error) ErrorClass() string  { return "invalid_request" }
func (*Error) ErrorReason() string { return "preflight_failed" }
