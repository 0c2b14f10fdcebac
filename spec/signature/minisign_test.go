package signature

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// minisignProgram runs the program in dir and returns what it prints.
func minisignProgram(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "minisign", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func needMinisign(t *testing.T) (dir string, write func(name string, data []byte)) {
	t.Helper()
	if _, err := exec.LookPath("minisign"); err != nil {
		t.Skipf("the minisign program is not installed: %v (scripts/prepare --tests)", err)
	}
	dir = t.TempDir()
	return dir, func(name string, data []byte) { must.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o600)) }
}

func TestMinisignVerifiesWhatWeSign(t *testing.T) {
	dir, write := needMinisign(t)
	key := newKey(t)
	write("hash", []byte(claim.Hash))
	write("acme.pub", key.Public().File())
	write("signature.sig", sign(t, key, claim))
	for _, by := range [][]string{{"-p", "acme.pub"}, {"-P", key.Public().String()}, {"-H", "-p", "acme.pub"}} {
		out, err := minisignProgram(t, dir, append([]string{"-V", "-m", "hash", "-x", "signature.sig"}, by...)...)
		if err != nil || !strings.Contains(out, "Trusted comment: "+claim.comment()+"\n") {
			t.Errorf("minisign -V %v: %v\n%s", by, err, out)
		}
	}
	write("hash", []byte(claim.Hash+"\n"))
	if out, err := minisignProgram(t, dir, "-V", "-m", "hash", "-x", "signature.sig", "-p", "acme.pub"); err == nil {
		t.Errorf("minisign accepts other bytes: %s", out)
	}
}

func TestWeVerifyWhatMinisignSigns(t *testing.T) {
	dir, write := needMinisign(t)
	if out, err := minisignProgram(t, dir, "-G", "-W", "-p", "acme.pub", "-s", "acme.key"); err != nil {
		t.Fatalf("minisign -G: %v\n%s", err, out)
	}
	text := must.Get(os.ReadFile(filepath.Join(dir, "acme.pub")))(t)
	public, err := ParsePublicKey(text)
	must.Do(t, err)
	if !strings.Contains(string(text), strings.TrimLeft(public.ID().String(), "0")) {
		t.Errorf("the id %s is not that in %s", public.ID(), text)
	}
	write("hash", []byte(claim.Hash))
	for form, flag := range map[string]string{"prehashed": "-H", "legacy": "-l"} {
		out, err := minisignProgram(t, dir, "-S", flag, "-s", "acme.key", "-m", "hash", "-x", "signature.sig", "-t",
			claim.comment(), "-c", "public key "+public.String())
		if err != nil {
			t.Fatalf("minisign -S: %v\n%s", err, out)
		}
		sig, err := os.ReadFile(filepath.Join(dir, "signature.sig"))
		must.Do(t, err)
		parsed, refused := parse(sig)
		if want := map[string]uint16{"prehashed": 0x4445, "legacy": 0x6445}[form]; refused != nil ||
			parsed.signatures[0].Algorithm != want {
			t.Errorf("the %s form has the algorithm %#x, %v", form, parsed.signatures[0].Algorithm, refused)
		}
		for _, known := range []Trust{{Authority: "github://acme"}, {Authority: "github://acme",
			Keys: []Known{{Key: public}}}} {
			if got, err := Check(known, claim, sig); err != nil || !got.Key.Equal(public) {
				t.Errorf("the %s form: Check = %+v, %v", form, got, err)
			}
		}
	}
	// Its secret key signs here, too.
	secret := must.Get(os.ReadFile(filepath.Join(dir, "acme.key")))(t)
	key, err := ParseSecretKey(secret, nil)
	must.Do(t, err)
	if !key.Public().Equal(public) {
		t.Errorf("the secret key is one of %s, not %s", key.Public(), public)
	}
	write("signature.sig", sign(t, key, claim))
	if out, err := minisignProgram(t, dir, "-V", "-m", "hash", "-x", "signature.sig", "-p", "acme.pub"); err != nil {
		t.Errorf("minisign -V: %v\n%s", err, out)
	}
}

// The file that Encrypt writes is one for the program, which asks for the passphrase on standard input.
func TestMinisignSignsWithOurEncryptedKey(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: scrypt takes 1 GiB of memory, twice")
	}
	dir, write := needMinisign(t)
	key := newKey(t)
	const passphrase = "correct horse battery"
	sealed, err := key.Encrypt([]byte(passphrase))
	must.Do(t, err)
	_, line, _ := strings.Cut(string(sealed), "\n")
	raw := must.Get(base64.StdEncoding.DecodeString(strings.TrimSpace(line)))(t)
	if ops, mem := binary.LittleEndian.Uint64(raw[38:]), binary.LittleEndian.Uint64(raw[46:]); ops != 32<<20 ||
		mem != 1<<30 {
		t.Errorf("scrypt is given %d operations and %d bytes, want minisign's own limits", ops, mem)
	}
	write("acme.key", sealed)
	write("hash", []byte(claim.Hash))
	cmd := exec.CommandContext(t.Context(), "minisign", "-S", "-s", "acme.key", "-m", "hash", "-x", "signature.sig", "-t",
		claim.comment())
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(passphrase+"\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("minisign -S: %v\n%s", err, out)
	}
	sig, err := os.ReadFile(filepath.Join(dir, "signature.sig"))
	must.Do(t, err)
	if _, err := Check(acme(key), claim, sig); err != nil {
		t.Error(err)
	}
}

// So is the cheap one of the end-to-end tests.
func TestACheapKeyIsAnEncryptedOne(t *testing.T) {
	dir, write := needMinisign(t)
	key := newKey(t)
	const passphrase = "correct horse battery"
	sealed := must.Get(key.encryptLittle([]byte(passphrase)))(t)
	read, err := ParseSecretKey(sealed, func() ([]byte, error) { return []byte(passphrase), nil })
	if err != nil || !read.Public().Equal(key.Public()) {
		t.Errorf("it is read as %v, %v", read.Public(), err)
	}
	if _, err := ParseSecretKey(sealed, func() ([]byte, error) { return []byte("wrong"), nil }); !errors.Is(err,
		ErrWrongPassphrase) {
		t.Errorf("a wrong passphrase: %v", err)
	}
	write("acme.key", sealed)
	write("hash", []byte(claim.Hash))
	cmd := exec.CommandContext(t.Context(), "minisign", "-S", "-s", "acme.key", "-m", "hash", "-x", "signature.sig")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(passphrase+"\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("minisign -S: %v\n%s", err, out)
	}
}

func TestAnEncryptedKeyNeedsItsPassphrase(t *testing.T) {
	dir, write := needMinisign(t)
	sealed, err := os.ReadFile("testdata/encrypted.key") // with the least cost of scrypt
	must.Do(t, err)
	for passphrase, want := range map[string]error{"correct horse battery": nil, "wrong": ErrWrongPassphrase} {
		key, err := ParseSecretKey(sealed, func() ([]byte, error) { return []byte(passphrase), nil })
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", passphrase, err, want)
		}
		if err == nil {
			write("acme.pub", key.Public().File())
			write("hash", []byte(claim.Hash))
			write("signature.sig", sign(t, key, claim))
		}
	}
	if out, err := minisignProgram(t, dir, "-V", "-m", "hash", "-x", "signature.sig", "-p", "acme.pub"); err != nil {
		t.Errorf("minisign -V: %v\n%s", err, out)
	}
}
