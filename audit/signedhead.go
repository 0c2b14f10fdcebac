package audit

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
	head
	origin string
	note   string // all of it
}

// checkpointText returns the text of which the signature is made.
func checkpointText(origin string, h head) (string, error) {
	raw, err := hex.DecodeString(h.hash)
	if err != nil || len(h.hash) != len(zeroHash) {
		return "", fmt.Errorf("sign the head of the audit log: row %d has no hash", h.seq)
	}
	return fmt.Sprintf("%s\n%d\n%s\n", origin, h.seq, base64.StdEncoding.EncodeToString(raw)), nil
}

// sign returns the signed head of h.
func (k *signKey) sign(h head) (string, error) {
	text, err := checkpointText(k.signer.Name(), h)
	if err != nil {
		return "", err
	}
	return k.signText(text)
}

// signText returns a text with its signature, as a note.
func (k *signKey) signText(text string) (string, error) {
	signed, err := note.Sign(&note.Note{Text: text}, k.signer)
	return string(signed), err
}

// ErrNoSignedHead is returned for a text that is no signed head of an audit log.
var ErrNoSignedHead = errors.New("it is not a signed head of an audit log")

// parseSignedHead parses a signed head, without its signature.
func parseSignedHead(text string) (s signedHead, err error) {
	body, _, ok := strings.Cut(text, "\n\n")
	lines := strings.Split(body, "\n")
	if !ok || len(lines) < 3 || !strings.HasPrefix(lines[0], originPrefix) {
		return s, ErrNoSignedHead
	}
	seq, err := strconv.ParseInt(lines[1], 10, 64)
	raw, failed := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || seq < 0 || strconv.FormatInt(seq, 10) != lines[1] || failed != nil || 2*len(raw) != len(zeroHash) {
		return s, ErrNoSignedHead
	}
	return signedHead{origin: lines[0], head: head{seq: seq, hash: hex.EncodeToString(raw)}, note: text}, nil
}

// keyring is the keys that signed heads may have, by the file in which they are stored or by what the caller knows.
type keyring struct {
	keys     note.Verifiers
	verified map[string]bool // the notes that were verified: rows and files have the same ones
}

func newKeyring(keys []string) (*keyring, error) {
	var list []note.Verifier
	for _, k := range keys {
		v, err := note.NewVerifier(k)
		if err != nil {
			return nil, fmt.Errorf("the key %q: %w", k, err)
		}
		list = append(list, v)
	}
	return &keyring{note.VerifierList(list...), map[string]bool{}}, nil
}

// anotherKey is what is wrong with a signature of a key that is not known. The names of its keys follow.
const anotherKey = "is signed by another key: "

// check returns what is wrong with the signature of s, or "".
func (r *keyring) check(s signedHead) string {
	if r.verified[s.note] {
		return ""
	}
	signed, err := note.Open([]byte(s.note), r.keys)
	var unknown *note.UnverifiedNoteError
	var bad *note.InvalidSignatureError
	switch {
	case errors.As(err, &unknown):
		return anotherKey + signers(unknown.Note)
	case errors.As(err, &bad):
		return "has a signature that does not fit its text"
	case err != nil:
		return "is not a signed note: " + err.Error()
	case signed.Sigs[0].Name != s.origin:
		return "is signed by the key of another log: " + signed.Sigs[0].Name
	}
	r.verified[s.note] = true
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

// splitNotes splits the content of a file of signed notes, each of which ends with its line of the signature. Whatever
// else is in the file is in rest.
func splitNotes(content string) (notes []string, rest string) {
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
