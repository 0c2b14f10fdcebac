package ca

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // OpenSSL names the links of a hash directory with it
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Bundle returns a PEM bundle with a root at its end, unless the bundle has it already.
func Bundle(existing, rootPEM []byte) []byte {
	if bytes.Contains(existing, bytes.TrimSpace(rootPEM)) {
		return existing
	}
	out := bytes.TrimRight(existing, "\n")
	if len(out) > 0 {
		out = append(bytes.Clone(out), '\n')
	}
	return append(out, rootPEM...)
}

// CheckBundle returns an error unless data is a bundle to which roots can be added:
// PEM with at least one certificate, not truncated within one, or blank.
func CheckBundle(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	begin, end := bytes.Count(data, []byte("-----BEGIN ")), bytes.Count(data, []byte("-----END "))
	switch block, _ := pem.Decode(data); {
	case block == nil:
		return errors.New("it is not PEM")
	case !holdsRoot(data):
		return errors.New("it holds no certificate")
	case begin != end:
		return errors.New("it is cut off in the middle of a certificate")
	}
	return nil
}

// systemBundles are the files in which distributions keep their roots.
var systemBundles = [...]string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// SystemBundle returns this host's bundle of roots.
func SystemBundle() ([]byte, error) {
	for _, path := range systemBundles {
		data, err := os.ReadFile(path)
		if err == nil {
			return data, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read the system's roots: %w", err)
		}
	}
	return nil, errors.New("read the system's roots: this host has no bundle of them")
}

// HashLink returns the name under which OpenSSL looks for a root in a directory of
// hash links: X509_NAME_hash of the subject, and ".0".
func HashLink(rootPEM []byte) (string, error) {
	block, _ := pem.Decode(rootPEM)
	if block == nil {
		return "", errors.New("name the root's hash link: it is not PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("name the root's hash link: %w", err)
	}
	canonical, err := canonicalName(cert.RawSubject)
	if err != nil {
		return "", fmt.Errorf("name the root's hash link: %w", err)
	}
	sum := sha1.Sum(canonical) //nolint:gosec // see the import
	return fmt.Sprintf("%08x.0", binary.LittleEndian.Uint32(sum[:4])), nil
}

type attribute struct {
	Type  asn1.ObjectIdentifier
	Value asn1.RawValue
}

// canonicalName returns OpenSSL's canonical encoding of a name: the sets without the
// outer sequence, strings as UTF-8 in lower case with white space collapsed.
func canonicalName(raw []byte) ([]byte, error) {
	var sets []asn1.RawValue
	if _, err := asn1.Unmarshal(raw, &sets); err != nil {
		return nil, err
	}
	var out []byte
	for _, set := range sets {
		var attrs []byte
		for rest := set.Bytes; len(rest) > 0; {
			var a attribute
			var err error
			if rest, err = asn1.Unmarshal(rest, &a); err != nil {
				return nil, err
			}
			text := strings.ToLower(strings.Join(strings.Fields(string(a.Value.Bytes)), " "))
			a.Value = asn1.RawValue{Class: asn1.ClassUniversal, Tag: asn1.TagUTF8String, Bytes: []byte(text)}
			der, err := asn1.Marshal(a)
			if err != nil {
				return nil, err
			}
			attrs = append(attrs, der...)
		}
		der, err := asn1.Marshal(asn1.RawValue{Class: asn1.ClassUniversal, Tag: asn1.TagSet, IsCompound: true, Bytes: attrs})
		if err != nil {
			return nil, err
		}
		out = append(out, der...)
	}
	return out, nil
}

// holdsRoot reports whether a bundle has a certificate. OpenSSL's trusted certificates
// count, although the parser does not accept them.
func holdsRoot(bundle []byte) bool {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		_, err := x509.ParseCertificate(block.Bytes)
		if block.Type == "CERTIFICATE" && err == nil || block.Type == "TRUSTED CERTIFICATE" {
			return true
		}
	}
	return false
}
