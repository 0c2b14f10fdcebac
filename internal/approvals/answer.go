package approvals

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/ALRubinger/aileron/internal/termsafe"
)

const (
	maxAnswer = 4 << 10 // of an answer, in bytes
	maxReason = 200     // of its reason, in characters
)

// The decisions of an answer.
const (
	approve = "approve"
	deny    = "deny"
	ask     = "ask"
)

// Answer is what a decider answers.
type Answer struct {
	Decision string // approve, deny or ask
	Reason   string // for the audit log; may be ""
}

// errAnswer has nothing of the answer.
var errAnswer = errors.New(`its answer is not one object such as {"decision": "ask", "reason": "…"}, ` +
	`with approve, deny or ask`)

// readAnswer reads an answer: one object with these keys alone, each at most once and in lower case, whose values are
// strings. What one reader takes for approve, no other one may take for deny.
func readAnswer(raw []byte) (a Answer, err error) {
	from := json.NewDecoder(bytes.NewReader(raw))
	if open, err := from.Token(); err != nil || open != json.Delim('{') || !utf8.Valid(raw) {
		return Answer{}, errAnswer
	}
	found := map[string]string{}
	for from.More() {
		key, keyErr := from.Token()
		value, valueErr := from.Token()
		name, _ := key.(string)
		text, isText := value.(string)
		_, twice := found[name]
		if keyErr != nil || valueErr != nil || !isText || twice || name != "decision" && name != "reason" {
			return Answer{}, errAnswer
		}
		found[name] = text
	}
	if _, err := from.Token(); err != nil { // the end of the object
		return Answer{}, errAnswer
	}
	if _, err := from.Token(); !errors.Is(err, io.EOF) {
		return Answer{}, errAnswer
	}
	a = Answer{found["decision"], found["reason"]}
	if a.Decision != approve && a.Decision != deny && a.Decision != ask {
		return Answer{}, errAnswer
	}
	return a, nil
}

// line returns a text as one short line that is safe on a terminal.
func line(text string) string {
	safe := []rune(termsafe.Line(text))
	if len(safe) > maxReason {
		return string(safe[:maxReason-1]) + "…"
	}
	return string(safe)
}

// reply keeps an answer of at most maxAnswer bytes.
type reply struct {
	text     []byte
	overflow func(error) // ends what writes more
}

func (r *reply) Write(p []byte) (int, error) {
	if len(r.text)+len(p) > maxAnswer {
		err := fmt.Errorf("its answer has more than %d bytes", maxAnswer)
		r.overflow(err)
		return 0, err
	}
	r.text = append(r.text, p...)
	return len(p), nil
}
