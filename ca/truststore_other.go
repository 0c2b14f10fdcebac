//go:build !linux

package ca

// systemCommand is nil: the keychain of macOS asks a person for each root.
func systemCommand() []string { return nil }

// systemAnchor is "", as above.
func systemAnchor() string { return "" }
