package detached

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// DefaultKeys are the keys that detach a terminal, unless others are chosen: those
// of Docker and Podman.
const DefaultKeys = "ctrl-p,ctrl-q"

// maxKeys bounds a sequence of keys.
const maxKeys = 8

// parseKeys returns the bytes that a terminal sends for keys, as ctrl-p,ctrl-q or
// ctrl-a,d.
func parseKeys(text string) ([]byte, error) {
	var keys []byte
	for word := range strings.SplitSeq(text, ",") {
		letter, ctrl := strings.CutPrefix(word, "ctrl-")
		if len(letter) != 1 || letter[0] <= ' ' || letter[0] > '~' {
			return nil, fmt.Errorf("%q is no key; keys are characters, or ctrl- with one of a-z @ [ \\ ] ^ _, "+
				"with commas between them", word)
		}
		c := letter[0]
		if ctrl {
			if upper := bytes.ToUpper([]byte{c})[0]; upper >= '@' && upper <= '_' {
				c = upper & 0x1f
			} else {
				return nil, fmt.Errorf("%q is no key: ctrl- goes with one of a-z @ [ \\ ] ^ _", word)
			}
		}
		keys = append(keys, c)
	}
	if len(keys) > maxKeys {
		return nil, errors.New("there are more than " + strconv.Itoa(maxKeys) + " keys")
	}
	return keys, nil
}

// CheckKeys returns an error for keys that cannot be typed.
func CheckKeys(text string) error {
	_, err := parseKeys(text)
	return err
}

// watcher watches what a person types for the keys that detach. Keys that may be the
// first of them are held back.
type watcher struct {
	keys []byte
	held []byte
	n    int // how many of keys are held
}

// feed returns what of typed passes now, and whether the keys were typed.
func (w *watcher) feed(typed []byte) (pass []byte, detach bool) {
	for len(typed) > 0 {
		key, is, n := nextKey(typed)
		part := typed[:n]
		typed = typed[n:]
		switch {
		case is == noKey && w.n > 0:
			w.held = append(w.held, part...) // a key that is let go does not end the sequence
			continue
		case is == aKey && key == w.keys[w.n]:
			w.held, w.n = append(w.held, part...), w.n+1
			if w.n == len(w.keys) {
				return pass, true
			}
			continue
		}
		pass = append(pass, w.release()...)
		if is == aKey && key == w.keys[0] {
			w.held, w.n = append(w.held, part...), 1
			continue
		}
		pass = append(pass, part...)
	}
	return pass, false
}

// release returns what is held: it was something else.
func (w *watcher) release() []byte {
	held := w.held
	w.held, w.n = nil, 0
	return held
}

// what nextKey finds.
type keyKind int

const (
	otherInput keyKind = iota // no key that could detach
	aKey
	noKey // a key was let go, or one that only changes others was pressed
)

// nextKey returns the first key of what was typed, as the byte that a plain terminal
// sends for it, and how long it is. A program may have asked for another form of keys:
// that of the kitty keyboard protocol, CSI code;modifiers:event u, or of xterm's
// modifyOtherKeys, CSI 27;modifiers;code ~.
func nextKey(typed []byte) (key byte, is keyKind, n int) {
	if !bytes.HasPrefix(typed, []byte("\x1b[")) {
		return typed[0], aKey, 1
	}
	end := bytes.IndexFunc(typed[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	if end < 0 || end > 32 {
		return 0, otherInput, 1
	}
	params, final := strings.Split(string(typed[2:2+end]), ";"), typed[2+end]
	n = end + 3
	modifiers := ""
	switch {
	case final == 'u':
		if len(params) > 1 {
			modifiers = params[1]
		}
	case final == '~' && len(params) == 3 && params[0] == "27":
		params[0], modifiers = params[2], params[1]
	default:
		return 0, otherInput, n
	}
	code, _, _ := strings.Cut(params[0], ":")
	modifiers, event, _ := strings.Cut(modifiers, ":")
	number, err := strconv.Atoi(code)
	if err != nil {
		return 0, otherInput, n
	}
	const firstModifier, lastModifier = 57441, 57454 // Shift and its like are keys of their own
	if event == "3" || number >= firstModifier && number <= lastModifier {
		return 0, noKey, n
	}
	held, _ := strconv.Atoi(modifiers) // "": none
	const locks = 64 | 128             // of capitals and of numbers
	switch held = max(held-1, 0) &^ locks; {
	case held == 0 && number > ' ' && number <= '~':
		return byte(number), aKey, n
	case held == 4 && number >= '@' && number <= '~':
		return byte(number) & 0x1f, aKey, n
	}
	return 0, otherInput, n
}
