package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestABodyWithOneOtherByteIsFound(t *testing.T) {
	chunk := []byte("0123456789")
	for _, size := range []int{1, 7, 64} {
		body := bytes.Repeat(chunk, 10)
		if err := writePieces(&repeating{chunk: chunk}, body, size); err != nil {
			t.Errorf("in pieces of %d: %v", size, err)
		}
		body[43] = 'x'
		err := writePieces(&repeating{chunk: chunk}, body, size)
		if err == nil || !strings.Contains(err.Error(), "byte 43 is another") {
			t.Errorf("in pieces of %d: %v, want an error that names byte 43", size, err)
		}
	}
}

func writePieces(to *repeating, body []byte, size int) error {
	for len(body) > 0 {
		n, err := to.Write(body[:min(size, len(body))])
		if err != nil {
			return err
		}
		body = body[n:]
	}
	return nil
}

func TestALeakDiffersFromWhatMayBeSeenInTheSecretsAlone(t *testing.T) {
	for _, kind := range apiShapes {
		leaky, redacted := leaking(chunks()[kind])
		var differ int
		for i := range leaky {
			if leaky[i] != redacted[i] {
				if differ++; redacted[i] != '*' {
					t.Fatalf("%s: byte %d is %q and %q", kind, i, leaky[i], redacted[i])
				}
			}
		}
		if n := bytes.Count(leaky, []byte(secret)); n != 2 || bytes.Contains(redacted, []byte(secret)) {
			t.Errorf("%s: %d places have the secret as it is, want 2 of the leak and none of what may be seen", kind, n)
		}
		if least := 6 * len(secret); differ < least {
			t.Errorf("%s: %d bytes differ, want at least %d", kind, differ, least)
		}
	}
}
