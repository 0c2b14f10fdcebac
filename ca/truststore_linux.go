package ca

import "github.com/smallstep/truststore"

// systemCommand is the program, with its arguments, that makes the system's bundle of its own roots; nil: it is not
// known.
func systemCommand() []string { return truststore.SystemTrustCommand }

// systemAnchor is the path of a root of the system's own, with %s for its name.
func systemAnchor() string { return truststore.SystemTrustFilename }
