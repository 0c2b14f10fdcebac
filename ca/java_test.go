package ca

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"software.sslmate.com/src/go-pkcs12"
)

// keytoolStore is a trust store as Java's own program makes it.
func keytoolStore(t *testing.T, kind, password string, roots ...[]byte) []byte {
	t.Helper()
	if _, err := exec.LookPath("keytool"); err != nil {
		t.Skip("keytool is not installed")
	}
	dir := t.TempDir()
	store := filepath.Join(dir, "cacerts")
	for i, root := range roots {
		file := filepath.Join(dir, "root.pem")
		if err := os.WriteFile(file, root, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "keytool", "-importcert", "-noprompt", "-keystore", store, "-storetype", kind, "-storepass", password,
			"-alias", strings.Repeat("x", i+1), "-file", file)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("keytool: %v\n%s", err, out)
		}
	}
	data, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTheRootsOfJavasOwnStoresAreRead(t *testing.T) {
	a, b := newTest(t, Options{Session: "01A"}), newTest(t, Options{Session: "01B"})
	bare, err := pkcs12.Passwordless.EncodeTrustStore([]*x509.Certificate{a.Root(), b.Root()}, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(*testing.T) []byte{
		"JKS":          func(t *testing.T) []byte { return keytoolStore(t, "JKS", "changeit", a.RootPEM(), b.RootPEM()) },
		"PKCS12":       func(t *testing.T) []byte { return keytoolStore(t, "PKCS12", "changeit", a.RootPEM(), b.RootPEM()) },
		"passwordless": func(*testing.T) []byte { return bare },
	} {
		t.Run(name, func(t *testing.T) {
			roots, err := JavaRoots(make(t))
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(roots, []byte("BEGIN CERTIFICATE")); n != 2 {
				t.Errorf("%d roots, want 2", n)
			}
			for _, s := range []*Session{a, b} {
				if block, _ := pem.Decode(s.RootPEM()); !bytes.Contains(roots, pem.EncodeToMemory(block)) {
					t.Errorf("a root is missing:\n%s", roots)
				}
			}
		})
	}
}

func TestAJavaStoreThatIsNotReadSaysWhy(t *testing.T) {
	s := newTest(t, Options{})
	jks := keytoolStore(t, "JKS", "changeit", s.RootPEM())
	bent := bytes.Clone(jks)
	bent[len(bent)/2] ^= 1
	for name, c := range map[string]struct {
		store []byte
		want  string
	}{
		"nothing":                  {nil, "pkcs12"},
		"text":                     {[]byte("not a store"), "pkcs12"},
		"damaged JKS":              {bent, "digest"},
		"cut JKS":                  {jks[:30], "cut off"},
		"JKS of another password":  {keytoolStore(t, "JKS", "another-one", s.RootPEM()), "password"},
		"PKCS12, another password": {keytoolStore(t, "PKCS12", "another-one", s.RootPEM()), "password"},
	} {
		t.Run(name, func(t *testing.T) {
			if roots, err := JavaRoots(c.store); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("JavaRoots = %d bytes, %v; want %q", len(roots), err, c.want)
			}
		})
	}
}

// A store of an image's may ask for hours.
func TestAJavaStoreThatAsksForTooMuchWorkIsNotRead(t *testing.T) {
	s := newTest(t, Options{})
	store, err := pkcs12.Modern2023.WithIterations(1000).EncodeTrustStore([]*x509.Certificate{s.Root()}, javaPassword)
	if err != nil {
		t.Fatal(err)
	}
	if n := iterations(store); n < 1000 || n > 10000 {
		t.Errorf("the store asks for %d, want what it was made with", n)
	}
	count := []byte{asn1.TagInteger, 2, 1000 >> 8, 1000 & 0xff}
	found := 0
	for at := range store {
		if !bytes.HasPrefix(store[at:], count) {
			continue
		}
		found++
		bent := bytes.Clone(store)
		bent[at+2], bent[at+3] = 0x7f, 0xff
		if n := iterations(bent); n != 0x7fff {
			t.Errorf("the count at %d is not seen: %d", at, n)
		}
	}
	if found == 0 {
		t.Error("no count is in the store")
	}
	huge, err := asn1.Marshal(struct {
		Salt  []byte
		Count int
	}{[]byte("salt"), 1 << 31})
	if err != nil {
		t.Fatal(err)
	}
	if roots, err := JavaRoots(huge); err == nil || !strings.Contains(err.Error(), "iterated 2147483648 times") {
		t.Errorf("JavaRoots = %d bytes, %v; want that it is too much", len(roots), err)
	}
}

func TestABundleThatCannotBeAddedToIsToldApart(t *testing.T) {
	root := string(newTest(t, Options{}).RootPEM())
	for name, c := range map[string]struct{ data, want string }{
		"roots": {"# a comment\n" + root, ""}, "empty": {" \n", ""},
		"text": {"these are no roots\n", "not PEM"}, "rubbish": {"-----BEGIN RUBBISH-----\nAAAA\n-----END RUBBISH-----\n", "no certificate"}, "cut": {root + root[:len(root)/2], "cut off"},
	} {
		err := CheckBundle([]byte(c.data))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: CheckBundle = %v, want %q", name, err, c.want)
		}
	}
}

func FuzzJavaRoots(f *testing.F) {
	f.Add([]byte{0xFE, 0xED, 0xFE, 0xED, 0, 0, 0, 2, 0xFF, 0xFF, 0xFF, 0xFF})
	f.Add([]byte("0\x80"))
	f.Fuzz(func(_ *testing.T, store []byte) {
		_, _ = JavaRoots(store)
		if len(store) > 12 { // past the digest
			_, _ = jksEntries(store)
		}
	})
}
