package ca

import (
	"bytes"
	"crypto/sha1"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/ALRubinger/aileron/e2e/must"
)

// keytoolStore returns a trust store of two roots, those of roots.pem, as Java's own program made it:
//
//	keytool -importcert -noprompt -keystore NAME -storetype JKS|PKCS12 -storepass PASSWORD -alias root1 -file ROOT
func keytoolStore(t *testing.T, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(filepath.Join("testdata", "java", name)))(t)
}

func TestTheRootsOfJavasOwnStoresAreRead(t *testing.T) {
	want := keytoolStore(t, "roots.pem")
	var certificates []*x509.Certificate
	for rest := want; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		root := must.Get(x509.ParseCertificate(block.Bytes))(t)
		certificates = append(certificates, root)
	}
	bare := must.Get(pkcs12.Passwordless.EncodeTrustStore(certificates, ""))(t)
	for name, store := range map[string][]byte{
		"JKS": keytoolStore(t, "changeit.jks"), "PKCS12": keytoolStore(t, "changeit.p12"), "passwordless": bare,
	} {
		t.Run(name, func(t *testing.T) {
			roots := must.Get(JavaRoots(store))(t)
			if n := bytes.Count(roots, []byte("BEGIN CERTIFICATE")); n != 2 || len(certificates) != 2 {
				t.Errorf("%d roots, want 2", n)
			}
			for _, root := range certificates {
				if !bytes.Contains(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw})) {
					t.Errorf("%s is missing:\n%s", root.Subject, roots)
				}
			}
		})
	}
}

// A JVM reads its cacerts without a password, with which alone a PKCS#12 file may have its certificates.
func TestARootIsAddedToAJavaStore(t *testing.T) {
	root := newTest(t, Options{}).RootPEM()
	bare := must.Get(AddToJavaStore(keytoolStore(t, "changeit.p12"), root))(t)
	for name, store := range map[string][]byte{
		"JKS": keytoolStore(t, "changeit.jks"), "PKCS12": keytoolStore(t, "changeit.p12"), "passwordless": bare,
	} {
		t.Run(name, func(t *testing.T) {
			got := must.Get(AddToJavaStore(store, root))(t)
			want := string(must.Get(JavaRoots(store))(t))
			if !strings.Contains(want, string(root)) {
				want += string(root)
			}
			if roots := must.Get(JavaRoots(got))(t); string(roots) != want {
				t.Errorf("it has\n%s\nwant\n%s", roots, want)
			}
			entries := len(store) - sha1.Size
			if isJKS(store) != isJKS(got) || isJKS(got) && !bytes.Equal(got[12:entries], store[12:entries]) {
				t.Errorf("the file is no longer what it was: %x", got)
			}
			if _, err := pkcs12.DecodeTrustStore(got, ""); err != nil && !isJKS(got) {
				t.Errorf("without a password: %v", err)
			}
		})
	}
	jks := keytoolStore(t, "changeit.jks")
	body := bytes.Clone(jks[:len(jks)-sha1.Size])
	body = append(body, body[12:]...) // entries that are not counted
	for name, store := range map[string][]byte{
		"no store": []byte("no store"), "another password": keytoolStore(t, "other.jks"),
		"something behind its entries": jksDigest(body).Sum(body),
	} {
		if got, err := AddToJavaStore(store, root); err == nil {
			t.Errorf("%s: AddToJavaStore = %d bytes", name, len(got))
		}
	}
}

func TestAJavaStoreThatIsNotReadHasAReason(t *testing.T) {
	jks := keytoolStore(t, "changeit.jks")
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
		"JKS of another password":  {keytoolStore(t, "other.jks"), "password"},
		"PKCS12, another password": {keytoolStore(t, "other.p12"), "password"},
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
	huge := must.Get(asn1.Marshal(struct {
		Salt  []byte
		Count int
	}{[]byte("salt"), 1 << 31}))(t)
	if roots, err := JavaRoots(huge); err == nil || !strings.Contains(err.Error(), "iterated 2147483648 times") {
		t.Errorf("JavaRoots = %d bytes, %v; want that it is too much", len(roots), err)
	}
}

func TestABundleThatCannotBeAddedToIsRecognised(t *testing.T) {
	root := string(newTest(t, Options{}).RootPEM())
	for name, c := range map[string]struct{ data, want string }{
		"roots":   {"# a comment\n" + root, ""},
		"empty":   {" \n", ""},
		"text":    {"these are no roots\n", "not PEM"},
		"rubbish": {"-----BEGIN RUBBISH-----\nAAAA\n-----END RUBBISH-----\n", "no certificate"},
		"cut":     {root + root[:len(root)/2], "cut off"},
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
	root := []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	f.Fuzz(func(_ *testing.T, store []byte) {
		_, _ = AddToJavaStore(store, root)
		if len(store) > 12 { // past the digest
			_, _ = jksEntries(store)
		}
	})
}
