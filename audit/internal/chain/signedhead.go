package chain

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// A signed head is a checkpoint (C2SP tlog-checkpoint) in a signed note (C2SP signed-note): the origin, the number of
// the row, the hash of the row in base64, an empty line, and the signature. Its hash is the head of a chain and not the
// root of a Merkle tree: tools that read checkpoints verify the signature, and there are no proofs of consistency.

// signedHead is a signed head as a file or a row has it.
type signedHead struct {
	Head
	Origin string
	Note   string // all of it
}

// CheckpointText returns the text of which the signature is made.
func CheckpointText(origin string, h Head) (string, error) {
	raw, err := hex.DecodeString(h.Hash)
	if err != nil || len(h.Hash) != len(ZeroHash) {
		return "", fmt.Errorf("sign the head of the audit log: row %d has no hash", h.Seq)
	}
	return fmt.Sprintf("%s\n%d\n%s\n", origin, h.Seq, base64.StdEncoding.EncodeToString(raw)), nil
}

// Sign returns the signed head of h.
func (k *SignKey) Sign(h Head) (string, error) {
	text, err := CheckpointText(k.Signer.Name(), h)
	if err != nil {
		return "", err
	}
	return k.signText(text)
}

// signText returns a text with its signature, as a note.
func (k *SignKey) signText(text string) (string, error) {
	signed, err := note.Sign(&note.Note{Text: text}, k.Signer)
	return string(signed), err
}

// ErrNoSignedHead is returned for a text that is no signed head of an audit log.
var ErrNoSignedHead = errors.New("it is not a signed head of an audit log")

// ParseSignedHead parses a signed head, without its signature.
func ParseSignedHead(text string) (s signedHead, err error) {
	body, _, ok := strings.Cut(text, "\n\n")
	lines := strings.Split(body, "\n")
	if !ok || len(lines) < 3 || !strings.HasPrefix(lines[0], OriginPrefix) {
		return s, ErrNoSignedHead
	}
	seq, err := strconv.ParseInt(lines[1], 10, 64)
	raw, failed := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || seq < 0 || strconv.FormatInt(seq, 10) != lines[1] || failed != nil || 2*len(raw) != len(ZeroHash) {
		return s, ErrNoSignedHead
	}
	return signedHead{Origin: lines[0], Head: Head{Seq: seq, Hash: hex.EncodeToString(raw)}, Note: text}, nil
}

// Keyring is the keys that signed heads may have, by the file in which they are stored or by what the caller knows.
type Keyring struct {
	Keys     note.Verifiers
	Verified map[string]bool // the notes that were verified: rows and files have the same ones
}

func NewKeyring(keys []string) (*Keyring, error) {
	var list []note.Verifier
	for _, k := range keys {
		v, err := note.NewVerifier(k)
		if err != nil {
			return nil, fmt.Errorf("the key %q: %w", k, err)
		}
		list = append(list, v)
	}
	return &Keyring{note.VerifierList(list...), map[string]bool{}}, nil
}

// anotherKey is what is wrong with a signature of a key that is not known. The names of its keys follow.
const anotherKey = "is signed by another key: "

// Check returns what is wrong with the signature of s, or "".
func (r *Keyring) Check(s signedHead) string {
	if r.Verified[s.Note] {
		return ""
	}
	signed, err := note.Open([]byte(s.Note), r.Keys)
	var unknown *note.UnverifiedNoteError
	var bad *note.InvalidSignatureError
	switch {
	case errors.As(err, &unknown):
		return anotherKey + signers(unknown.Note)
	case errors.As(err, &bad):
		return "has a signature that does not fit its text"
	case err != nil:
		return "is not a signed note: " + err.Error()
	case signed.Sigs[0].Name != s.Origin:
		return "is signed by the key of another log: " + signed.Sigs[0].Name
	}
	r.Verified[s.Note] = true
	return ""
}

// signers returns the names of the keys of a note.
func signers(n *note.Note) string {
	var names []string
	for _, s := range n.UnverifiedSigs {
		names = append(names, fmt.Sprintf("%s+%08x", s.Name, s.Hash))
	}
	return strings.Join(names, ", ")
}

// SplitNotes splits the content of a file of signed notes, each of which ends with its line of the signature. Whatever
// else is in the file is in rest.
func SplitNotes(content string) (notes []string, rest string) {
	begin, signed := 0, false
	for at := 0; at < len(content); {
		line, _, whole := strings.Cut(content[at:], "\n")
		next := at + len(line)
		if whole {
			next++
		}
		switch isSignature := strings.HasPrefix(line, "— "); {
		case signed && !isSignature:
			notes, signed = append(notes, content[begin:at]), false
			if begin = at; line == "" {
				begin = next
			}
		case isSignature && whole:
			signed = true
		}
		at = next
	}
	if signed {
		return append(notes, content[begin:]), ""
	}
	return notes, content[begin:]
}
