package signature

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"fmt"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/scrypt"
)

var littleWork bool

// TestOnlyLittleWork makes [SecretKey.Encrypt] spend little on a key, in the program of the end-to-end tests alone: see
// [github.com/ALRubinger/aileron/vault.TestOnlyWorkFactor].
func TestOnlyLittleWork() { littleWork = true }

// encryptLittle encrypts as minisign.EncryptKey does, whose cost is fixed, with the least cost that minisign knows.
func (k SecretKey) encryptLittle(passphrase []byte) ([]byte, error) {
	text, err := k.key.MarshalText()
	if err != nil {
		return nil, err
	}
	comment, line, _ := bytes.Cut(text, []byte("\n"))
	raw, err := strict.DecodeString(string(line))
	if err != nil {
		return nil, err
	}
	salt, key := raw[6:38], raw[54:126]
	binary.LittleEndian.PutUint16(raw[2:], kdfScrypt)
	_, _ = rand.Read(salt) // does not fail
	binary.LittleEndian.PutUint64(raw[38:], 1<<15)
	binary.LittleEndian.PutUint64(raw[46:], 1<<24)
	sum := blake2b.Sum256(append([]byte("Ed"), key...))
	copy(raw[126:], sum[:])
	stream, err := scrypt.Key(passphrase, salt, 1<<10, 8, 1, len(raw[54:]))
	if err != nil {
		return nil, err
	}
	subtle.XORBytes(raw[54:], raw[54:], stream)
	return fmt.Appendf(nil, "%s\n%s\n", comment, strict.EncodeToString(raw)), nil
}
