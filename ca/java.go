package ca

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the format's own digest
	"crypto/subtle"
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"hash"
	"math"
	"math/big"
	"unicode/utf16"

	"software.sslmate.com/src/go-pkcs12"
)

// javaPassword is the password of every trust store that Java ships. It protects no
// secret.
const javaPassword = "changeit"

// AddToJavaStore returns a Java trust store with the certificates of a PEM bundle added. The result is for the place
// from which Java read the store: a JKS file stays as it is, but for new entries and its digest; of a PKCS#12 file the
// certificates are kept, without a password, as a JVM reads its cacerts without one. Stores that [JavaRoots] does not
// read are errors.
func AddToJavaStore(store, bundlePEM []byte) ([]byte, error) {
	before, err := JavaRoots(store)
	if err != nil {
		return nil, err
	}
	want := Bundle(before, bundlePEM)
	if bytes.Equal(before, want) {
		return store, nil
	}
	var out []byte
	if isJKS(store) {
		out = addToJKS(store, trustEntries(bundlePEM))
	} else if out, err = pkcs12.Passwordless.EncodeTrustStoreEntries(trustEntries(want), ""); err != nil {
		return nil, fmt.Errorf("encode the Java trust store: %w", err)
	}
	if after, err := JavaRoots(out); err != nil || !bytes.Equal(after, want) {
		return nil, errors.New("add to the Java trust store: it has something behind its entries")
	}
	return out, nil
}

// JavaTrustStore returns a PEM bundle as a PKCS#12 file for Java, with the password
// "changeit". It ignores everything in the bundle but certificates that parse.
func JavaTrustStore(bundlePEM []byte) ([]byte, error) {
	// The integrity algorithm of this encoder is read by Java 8 and later.
	data, err := pkcs12.LegacyDES.EncodeTrustStoreEntries(trustEntries(bundlePEM), javaPassword)
	if err != nil {
		return nil, fmt.Errorf("encode the Java trust store: %w", err)
	}
	return data, nil
}

// trustEntries returns the certificates of a bundle that parse, each with a name of its own.
func trustEntries(bundlePEM []byte) (entries []pkcs12.TrustStoreEntry) {
	for rest := bundlePEM; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return entries
		}
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			name := fmt.Sprintf("root-%d", len(entries))
			entries = append(entries, pkcs12.TrustStoreEntry{Cert: cert, FriendlyName: name})
		}
	}
}

// JavaRoots returns the certificates in a Java trust store (cacerts) as PEM. The store
// is a JKS file, or a PKCS#12 file with the password "changeit" or none. Another
// password, a broken file and a file without certificates are errors.
func JavaRoots(store []byte) ([]byte, error) {
	certs, err := javaCertificates(store)
	if err != nil {
		return nil, fmt.Errorf("read the Java trust store: %w", err)
	}
	if len(certs) == 0 {
		return nil, errors.New("read the Java trust store: it holds no certificate")
	}
	var out bytes.Buffer
	for _, der := range certs {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der}) // a buffer takes it
	}
	return out.Bytes(), nil
}

func javaCertificates(store []byte) ([][]byte, error) {
	if isJKS(store) {
		return jksCertificates(store)
	}
	if n := iterations(store); n > maxIterations {
		return nil, fmt.Errorf("its password is iterated %d times, more than the %d that are accepted",
			n, maxIterations)
	}
	found, err := pkcs12.DecodeTrustStore(store, javaPassword)
	if err != nil { // from Java 18 on, the JDK's own has no password
		var bare error
		if found, bare = pkcs12.DecodeTrustStore(store, ""); bare != nil {
			return nil, err
		}
	}
	var certs [][]byte
	for _, c := range found {
		certs = append(certs, c.Raw)
	}
	return certs, nil
}

// maxIterations bounds the work that a foreign store may ask for. Java's own stores
// have 10000.
const maxIterations = 1 << 20

// iterations returns the highest iteration count in a PKCS#12 file. Each, in the
// parameters of the MAC and of the ciphers, follows its salt: an INTEGER after an
// OCTET STRING (RFC 7292 section 4 and appendix B, RFC 8018 appendix A). Strings are
// searched too, as contents are packed in them.
func iterations(der []byte) int64 {
	highest, salted := int64(0), false
	for len(der) > 0 {
		var element asn1.RawValue
		rest, err := asn1.Unmarshal(der, &element)
		if err != nil {
			break // a salt, or what is encrypted
		}
		der = rest
		isString := element.Class == asn1.ClassUniversal && element.Tag == asn1.TagOctetString
		switch {
		case salted && element.Class == asn1.ClassUniversal && element.Tag == asn1.TagInteger:
			n := new(big.Int).SetBytes(element.Bytes)
			if !n.IsInt64() {
				return math.MaxInt64
			}
			highest = max(highest, n.Int64())
		case isString, element.IsCompound:
			highest = max(highest, iterations(element.Bytes))
		}
		salted = isString
	}
	return highest
}

const (
	jksMagic       = 0xFEEDFEED
	jksKey         = 1
	jksCertificate = 2
)

func isJKS(store []byte) bool { return len(store) >= 4 && binary.BigEndian.Uint32(store) == jksMagic }

// addToJKS adds entries to a JKS file that jksCertificates has read.
func addToJKS(store []byte, entries []pkcs12.TrustStoreEntry) []byte {
	out := bytes.Clone(store[:len(store)-sha1.Size])
	version, count := out[4:8], out[8:12]
	number := func(n int) uint32 { return uint32(n) } //nolint:gosec // far below: entries are the session's roots
	binary.BigEndian.PutUint32(count, binary.BigEndian.Uint32(count)+number(len(entries)))
	text := func(s string) {
		out = append(binary.BigEndian.AppendUint16(out, uint16(len(s))), s...) //nolint:gosec // a short name
	}
	for _, e := range entries {
		out = binary.BigEndian.AppendUint32(out, jksCertificate)
		text("aileron-" + e.FriendlyName)
		out = binary.BigEndian.AppendUint64(out, uint64(e.Cert.NotBefore.UnixMilli()))
		if binary.BigEndian.Uint32(version) == 2 {
			text("X.509")
		}
		out = append(binary.BigEndian.AppendUint32(out, number(len(e.Cert.Raw))), e.Cert.Raw...)
	}
	return jksDigest(out).Sum(out)
}

// jksDigest returns the digest of everything before it in a JKS file.
func jksDigest(body []byte) hash.Hash {
	digest := sha1.New() //nolint:gosec // see the import
	for _, unit := range utf16.Encode([]rune(javaPassword)) {
		digest.Write(binary.BigEndian.AppendUint16(nil, unit))
	}
	digest.Write([]byte("Mighty Aphrodite"))
	digest.Write(body)
	return digest
}

// jksCertificates returns the trusted certificates of a JKS file (version 1 or 2),
// whose last 20 bytes are a digest of the password and everything before. It skips
// keys, which a trust store does not need.
func jksCertificates(store []byte) ([][]byte, error) {
	if len(store) < 12+sha1.Size {
		return nil, errors.New("it is cut off")
	}
	body, sum := store[:len(store)-sha1.Size], store[len(store)-sha1.Size:]
	if subtle.ConstantTimeCompare(jksDigest(body).Sum(nil), sum) != 1 {
		return nil, errors.New("its digest is wrong: it is damaged, or its password is not changeit")
	}
	return jksEntries(body[4:])
}

// jksEntries returns the certificates in what follows the first number of a file.
func jksEntries(data []byte) ([][]byte, error) {
	r := jksReader{rest: data}
	version, count := r.number(), r.number()
	if version != 1 && version != 2 {
		return nil, fmt.Errorf("its version is %d, and 1 and 2 are known", version)
	}
	certificate := func() []byte {
		if version == 2 {
			r.text() // its type: X.509
		}
		return r.bytes(r.number())
	}
	var certs [][]byte
	for range count {
		tag := r.number()
		r.text()   // the alias
		r.bytes(8) // the date
		switch tag {
		case jksCertificate:
			certs = append(certs, certificate())
		case jksKey:
			r.bytes(r.number())
			for range r.number() {
				if certificate(); r.short {
					break
				}
			}
		default:
			return nil, fmt.Errorf("it holds an entry of the unknown kind %d", tag)
		}
		if r.short {
			return nil, errors.New("it is cut off")
		}
	}
	return certs, nil
}

// jksReader reads big-endian numbers and what follows them. Beyond the end it returns
// zeros and sets short.
type jksReader struct {
	rest  []byte
	short bool
}

func (r *jksReader) bytes(n uint32) []byte {
	if uint64(n) > uint64(len(r.rest)) {
		r.short, r.rest = true, nil
		return nil
	}
	part := r.rest[:n]
	r.rest = r.rest[n:]
	return part
}

func (r *jksReader) number() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *jksReader) text() {
	if b := r.bytes(2); b != nil {
		r.bytes(uint32(binary.BigEndian.Uint16(b)))
	}
}
