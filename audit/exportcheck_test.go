package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/ALRubinger/aileron/audit/internal/chain"
	"github.com/ALRubinger/aileron/e2e/must"
)

// What an export has is what was hashed, whatever the values of the fields are: structs, text that is no UTF-8,
// numbers of any form. Names are in the order of their bytes at every depth.
func TestAnExportOfAnyFieldsIsVerified(t *testing.T) {
	type grant struct {
		Connector string `json:"connector"`
		Binding   string `json:"binding,omitempty"`
		More      any    `json:"a"`
	}
	for name, value := range map[string]any{
		"a struct":             grant{"z", "b", grant{"y", "", nil}},
		"structs":              []grant{{"z", "b", 1}, {"<&>", "", "{"}},
		"structs in a list":    []any{grant{"z", "b", 1}, map[string]any{"z": 1, "b": grant{}}},
		"structs in a map":     map[string]grant{"z": {}, "a": {"x", "y", 2}},
		"a struct's list":      map[string]any{"list": []any(nil), "map": map[string]any(nil)},
		"raw JSON":             json.RawMessage(`{"b":1,"a":{"d":1.5,"c":1000}}`),
		"numbers":              []any{1.5, 1e21, 1e-7, float32(0.1), 1 << 40, json.Number("12")},
		"no UTF-8":             "a\xffb\xc3\xe2\x80",
		"no UTF-8 in a list":   []string{"\xff\xfe", "\xed\xa0\x80"},
		"no UTF-8 in a struct": grant{"\xff", "", nil},
		"separators":           "\u2028\u2029\u0085\ufeff\ufffd",
	} {
		t.Run(name, func(t *testing.T) {
			log := must.Get(Open(filepath.Join(t.TempDir(), "audit.db"), Options{}))(t)
			defer log.Close()
			must.Get(log.Append(t.Context(), Row{Event: EventSessionStarted,
				Fields: map[string]any{"value": value}}))(t)
			rows := must.Get(log.List(t.Context(), Filter{}))(t)
			var export bytes.Buffer
			out := json.NewEncoder(&export)
			out.SetEscapeHTML(false)
			for _, r := range rows {
				must.Do(t, out.Encode(r))
			}
			got, err := VerifyExport(strings.NewReader(export.String()), Evidence{})
			if err != nil || !got.OK {
				t.Errorf("the export is not verified: %v, %s\n%s", err, got.Why, export.String())
			}
			if r, err := log.Verify(t.Context()); err != nil || !r.OK {
				t.Errorf("the log is not verified: %v, %+v", err, r)
			}
		})
	}
}

// exported returns the lines of rows that are chained one behind the other, but for their numbers.
func exported(t *testing.T, rows ...Row) string {
	t.Helper()
	var lines bytes.Buffer
	out := json.NewEncoder(&lines)
	prev := chain.ZeroHash
	for _, r := range rows {
		r.Begin()
		fields := must.Get(r.AppendFields(nil))(t)
		r.Chain(prev, string(fields))
		prev = r.Hash
		must.Do(t, out.Encode(r))
	}
	return lines.String()
}

// No row can hide the order of those behind it.
func TestAnExportHasItsRowsInOrder(t *testing.T) {
	const newest = math.MaxInt64
	got, err := VerifyExport(strings.NewReader(exported(t, Row{Seq: newest}, Row{Seq: 3}, Row{Seq: 2})), Evidence{})
	if want := "it comes behind row 9223372036854775807"; err != nil || got.OK || got.Why != want ||
		len(got.Findings) != 2 {
		t.Errorf("found %q, %+v, %v; want %q", got.Why, got.Findings, err, want)
	}
}

// The names of keys that an export has are bounded, and so is the time to look them up.
func TestAnExportOfManyKeysIsBounded(t *testing.T) {
	var rows []Row
	for i := range 4 * chain.MaxFindings {
		name := fmt.Sprintf("%s%06d", chain.OriginPrefix, i)
		rows = append(rows, Row{Seq: int64(i + 1), Event: EventCheckpoint, Fields: map[string]any{chain.CheckpointField: "" +
			name + "\n1\n" + strings.Repeat("A", 43) + "=\n\n— " + name + " " + strings.Repeat("A", 92) + "\n"}})
	}
	got, err := VerifyExport(strings.NewReader(exported(t, rows...)), Evidence{})
	if err != nil || len(got.Signers) != chain.MaxFindings {
		t.Errorf("%d names, %v; want %d", len(got.Signers), err, chain.MaxFindings)
	}
	check := &chain.SignedCheck{Keys: &chain.Keyring{Verified: map[string]bool{}, Keys: note.VerifierList()}}
	for _, r := range rows {
		text, _ := r.Fields[chain.CheckpointField].(string)
		s := must.Get(chain.ParseSignedHead(text))(t)
		check.IsSigned(s, Finding{}, "a head")
	}
	more := check.Faults[len(check.Faults)-1].More
	if len(check.Faults) != chain.MaxFindings || more != 3*chain.MaxFindings {
		t.Errorf("%d faults, and %d more", len(check.Faults), more)
	}
}

func TestALineOfAnExportThatIsTooLongIsNamed(t *testing.T) {
	row := exported(t, Row{Seq: 1})
	long := io.MultiReader(strings.NewReader(row), io.LimitReader(zeros{}, chain.MaxExportLine+1))
	if _, err := VerifyExport(long, Evidence{}); err == nil || !strings.Contains(err.Error(),
		"line 2 is longer than 64 MiB") {
		t.Errorf("the error is %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}
