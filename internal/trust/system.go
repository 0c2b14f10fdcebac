package trust

import (
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/hint"
)

// bundlePaths are where distributions keep their roots: as crypto/x509 has
// them, and OpenSSL's own file in the RHEL family.
var bundlePaths = [...]string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Alpine, Arch
	"/etc/pki/tls/certs/ca-bundle.crt",                  // RHEL, Fedora
	"/etc/ssl/ca-bundle.pem",                            // SUSE
	"/etc/pki/tls/cacert.pem",                           // OpenELEC
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // RHEL, Fedora
	"/etc/ssl/cert.pem",                                 // Alpine
	"/etc/pki/tls/cert.pem",                             // OpenSSL in RHEL and Fedora
	"/etc/ssl/certs/ca-bundle.crt",
}

// A family is a group of distributions. What lies in its anchors is kept when
// update-ca-certificates or update-ca-trust builds the bundle again.
type family struct{ mark, anchors, bundle string }

// families are the known ones, each by a path that no other has.
var families = [...]family{
	// RHEL, Fedora
	{"/etc/pki/ca-trust", "/etc/pki/ca-trust/source/anchors", "/etc/pki/tls/certs/ca-bundle.crt"},
	// Arch
	{"/etc/ca-certificates/trust-source", "/etc/ca-certificates/trust-source/anchors", bundlePaths[0]},
	// SUSE
	{"/etc/pki/trust", "/etc/pki/trust/anchors", "/etc/ssl/ca-bundle.pem"},
	// Debian and Alpine, and each before its package ca-certificates is installed
	{"/etc/ca-certificates.conf", "/usr/local/share/ca-certificates", bundlePaths[0]},
	{"/etc/debian_version", "/usr/local/share/ca-certificates", bundlePaths[0]},
	{"/etc/alpine-release", "/usr/local/share/ca-certificates", bundlePaths[0]},
}

// hashDirs are the directories in which OpenSSL looks for a root by its hash.
var hashDirs = [...]string{"/etc/ssl/certs", "/etc/pki/tls/certs"}

// bundles adds the root to every bundle of the image, and returns the image's
// own roots. An image that has none gets the host's, at its family's place.
func (in *installer) bundles() (system []byte) {
	var empty []string
	for _, name := range bundlePaths {
		place := in.find(name)
		if in.err != nil {
			return nil
		}
		if !place.Exists() || in.taken["/"+place.Path] {
			continue
		}
		data, err := in.read(name)
		if err == nil {
			err = ca.CheckBundle(data)
		}
		switch {
		case err != nil:
			in.refuse(name, err)
			return nil
		case blank(data):
			empty = append(empty, name)
			continue
		case system == nil:
			system = data
		}
		in.put(name, ca.Bundle(data, in.root))
	}
	if system == nil {
		system = in.hostRoots()
		if empty == nil {
			empty = []string{in.family().bundle}
		}
	}
	for _, name := range empty {
		in.put(name, ca.Bundle(system, in.root))
	}
	return system
}

func (in *installer) hostRoots() []byte {
	roots, err := in.options.HostRoots()
	if err != nil {
		in.fail(hint.New(fmt.Errorf("it has no roots of its own, and the host's cannot be used: %w", err),
			"install ca-certificates on this host or in the image"))
	}
	return roots
}

// family returns the image's family, or one without anchors.
func (in *installer) family() family {
	for _, f := range families {
		if in.has(f.mark) {
			return f
		}
	}
	return family{bundle: bundlePaths[0]}
}

// anchors puts the root where the distribution's own program finds it when it
// builds the bundles again.
func (in *installer) anchors() {
	for _, f := range families {
		if in.has(f.mark) {
			in.put(f.anchors+"/aileron-session.crt", in.root)
		}
	}
}

// hashLinks puts the root under its hash, at the first number that is free.
func (in *installer) hashLinks() {
	link, err := ca.HashLink(in.root)
	if err != nil {
		in.fail(err)
		return
	}
	hash := strings.TrimSuffix(link, "0")
	for _, dir := range hashDirs {
		if !in.has(dir) && dir != hashDirs[0] {
			continue
		}
		for n := range 8 {
			if name := fmt.Sprintf("%s/%s%d", dir, hash, n); !in.has(name) {
				in.put(name, in.root)
				break
			}
		}
	}
}
