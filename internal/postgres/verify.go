package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ALRubinger/aileron/audit"
)

// Verdict is what Verify found.
type Verdict struct {
	OK      bool            `json:"ok"`
	Origins []OriginVerdict `json:"origins"`
}

// OriginVerdict is what was found of one origin.
type OriginVerdict struct {
	Origin   string    `json:"origin"`
	Key      string    `json:"key"` // as it was registered
	Role     string    `json:"role"`
	Rows     int64     `json:"rows"`
	First    int64     `json:"first"`
	Last     int64     `json:"last"`
	LastTS   string    `json:"last_ts,omitempty"`
	Head     string    `json:"head,omitempty"`
	Shipped  string    `json:"shipped,omitempty"` // when the newest batch arrived
	Signed   int64     `json:"signed"`            // the newest row that has a valid signature; 0: none
	OK       bool      `json:"ok"`
	Findings []Finding `json:"findings"`
	More     bool      `json:"more,omitempty"` // there are other findings
	Gaps     []Gap     `json:"gaps"`           // that were stated
	Open     []Session `json:"open_sessions"`
}

// Finding is one thing that does not verify.
type Finding struct {
	Seq int64  `json:"seq"`
	Why string `json:"why"`
}

// Gap is rows that the log did not have when they were to be shipped.
type Gap struct {
	First  int64  `json:"first"`
	Last   int64  `json:"last"`
	Reason string `json:"reason"`
	Stated string `json:"stated"`
}

// Session is a session whose end was not shipped.
type Session struct {
	ID      string `json:"session_id"`
	Started string `json:"started"`
	Last    int64  `json:"last"` // its newest row
	LastTS  string `json:"last_ts"`
}

// maxFindings bounds the findings of an origin.
const maxFindings = 100

// unsignedRows is how many rows an origin may have behind its newest signed head: heads are signed every 1000 rows.
const unsignedRows = 1001

// Verify recomputes the hashes and the chain of every origin, or of one, in the database, and checks signed heads with
// the public keys; with none, each origin's with the one that was registered first.
func (d *Database) Verify(ctx context.Context, origin string, keys []string) (v Verdict, err error) {
	if err := d.check(ctx); err != nil {
		return v, err
	}
	if err := d.exec(ctx, beginReading); err != nil {
		return v, fmt.Errorf("verify %s: %w", d, err)
	}
	defer d.Close()
	if v, err = d.verify(ctx, origin, keys); err != nil {
		return v, fmt.Errorf("verify %s: %w", d, err)
	}
	return v, nil
}

func (d *Database) verify(ctx context.Context, origin string, keys []string) (v Verdict, err error) {
	const origins = "SELECT origin, coalesce(o.key, ''), coalesce(o.role, '') FROM aileron.origins o FULL JOIN " +
		"(SELECT DISTINCT origin FROM aileron.events) e USING (origin) WHERE $1 IN ('', origin) ORDER BY origin"
	found, err := d.query(ctx, origins, origin)
	if err != nil {
		return v, err
	}
	if len(found) == 0 && origin != "" {
		return v, fmt.Errorf("it has no origin %s", origin)
	}
	v.OK, v.Origins = true, []OriginVerdict{}
	for _, f := range found {
		one := OriginVerdict{Origin: f[0], Key: f[1], Role: f[2], Findings: []Finding{}, Gaps: []Gap{}, Open: []Session{}}
		for _, step := range []func(context.Context, *OriginVerdict) error{d.count, d.findings, d.gaps, d.open} {
			if err := step(ctx, &one); err != nil {
				return v, err
			}
		}
		trusted := keys
		if len(trusted) == 0 && one.Key != "" {
			trusted = []string{one.Key}
		}
		if err := d.signatures(ctx, &one, trusted); err != nil {
			return v, err
		}
		one.OK = len(one.Findings) == 0
		v.OK = v.OK && one.OK
		v.Origins = append(v.Origins, one)
	}
	return v, nil
}

// count reads how many rows there are.
func (d *Database) count(ctx context.Context, v *OriginVerdict) error {
	const rows = "SELECT count(*), coalesce(min(seq), 0), coalesce(max(seq), 0) FROM aileron.events WHERE origin = $1"
	found, err := d.query(ctx, rows, v.Origin)
	if err != nil {
		return err
	}
	v.Rows, v.First, v.Last = number(found[0][0]), number(found[0][1]), number(found[0][2])
	found, err = d.query(ctx, "SELECT ts, hash FROM aileron.events WHERE origin = $1 AND seq = $2", v.Origin,
		strconv.FormatInt(v.Last, 10))
	if err != nil {
		return err
	}
	for _, f := range found {
		v.LastTS, v.Head = f[0], f[1]
	}
	const newest = "SELECT " + utc + "(max(shipped)) FROM aileron.heads WHERE origin = $1"
	if found, err = d.query(ctx, newest, v.Origin); err == nil {
		v.Shipped = found[0][0]
	}
	return err
}

// utc is the function that writes a time in UTC.
const utc = "aileron.utc"

// number returns a bigint that the database wrote.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// findings reads what does not verify in SQL.
func (d *Database) findings(ctx context.Context, v *OriginVerdict) error {
	const query = "SELECT seq, found FROM aileron.findings WHERE origin = $1 ORDER BY seq LIMIT $2"
	found, err := d.query(ctx, query, v.Origin, strconv.Itoa(maxFindings+1))
	if v.More = len(found) > maxFindings; v.More {
		found = found[:maxFindings]
	}
	for _, f := range found {
		v.Findings = append(v.Findings, Finding{number(f[0]), f[1]})
	}
	return err
}

// gaps reads the gaps that were stated.
func (d *Database) gaps(ctx context.Context, v *OriginVerdict) error {
	const query = "SELECT first_seq, last_seq, reason, " + utc + "(stated) FROM aileron.gaps WHERE origin = $1 " +
		"ORDER BY last_seq"
	found, err := d.query(ctx, query, v.Origin)
	for _, f := range found {
		g := Gap{number(f[0]), number(f[1]), f[2], f[3]}
		v.Gaps = append(v.Gaps, g)
		if g.Reason == "missing" {
			v.Findings = append(v.Findings, Finding{g.First, fmt.Sprintf("rows %d to %d were missing in the log itself",
				g.First, g.Last)})
		}
	}
	return err
}

// open reads the sessions without an end.
func (d *Database) open(ctx context.Context, v *OriginVerdict) error {
	const query = "SELECT session_id, started, last_seq, last_ts FROM aileron.open_sessions WHERE origin = $1 " +
		"ORDER BY started"
	found, err := d.query(ctx, query, v.Origin)
	for _, f := range found {
		v.Open = append(v.Open, Session{f[0], f[1], number(f[2]), f[3]})
	}
	return err
}

// signatures checks the signed heads of batches, and those in rows. That of a row is of the row before it.
func (d *Database) signatures(ctx context.Context, v *OriginVerdict, keys []string) error {
	const heads = "SELECT seq, hash, note FROM aileron.heads WHERE origin = $1 AND note <> ''"
	found, err := d.query(ctx, heads, v.Origin)
	if err != nil {
		return err
	}
	for _, f := range found {
		v.signed(audit.Head{Seq: number(f[0]), Hash: f[1]}, number(f[0]), f[2], keys)
	}
	const inRows = "SELECT seq, prev_hash, fields FROM aileron.events WHERE origin = $1 AND event = $2 ORDER BY seq"
	if found, err = d.query(ctx, inRows, v.Origin, string(audit.EventCheckpoint)); err != nil {
		return err
	}
	for _, f := range found {
		var fields struct {
			Checkpoint string `json:"checkpoint"`
		}
		_ = json.Unmarshal([]byte(f[2]), &fields) // if it fails, there is no note
		v.signed(audit.Head{Seq: number(f[0]) - 1, Hash: f[1]}, number(f[0]), fields.Checkpoint, keys)
	}
	switch {
	case v.Rows > 0 && v.Signed == 0:
		v.Findings = append(v.Findings, Finding{v.Last, "no row of it has a signed head: who has its key has not sent it, " +
			"or could not sign"})
	case v.Last-max(v.Signed, v.First-1) > unsignedRows:
		v.Findings = append(v.Findings, Finding{v.Last, fmt.Sprintf("no signed head follows row %d, and one is due every "+
			"1000 rows", max(v.Signed, v.First))})
	}
	slices.SortStableFunc(v.Findings, func(a, b Finding) int { return cmp.Compare(a.Seq, b.Seq) })
	return nil
}

// signed checks one signed head.
func (v *OriginVerdict) signed(head audit.Head, seq int64, note string, keys []string) {
	is, origin, err := audit.OpenSignedHead(note, keys)
	why := ""
	switch id, ok := audit.OriginOf(origin); {
	case errors.Is(err, audit.ErrAnotherKey):
		why = "its head is signed by another key"
	case err != nil:
		why = err.Error()
	case !ok || id != v.Origin:
		why = "its head is signed as one of another origin"
	case is != head:
		why = "its head is signed for another row"
	default:
		v.Signed = max(v.Signed, head.Seq)
		return
	}
	if len(v.Findings) >= maxFindings {
		v.More = true
		return
	}
	v.Findings = append(v.Findings, Finding{seq, why})
}
