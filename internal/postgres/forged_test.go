package postgres_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/internal/postgres"
)

// A role that ships can compute hashes, and knows the public key of a host that has not shipped yet.
func TestAnOriginWithoutASignatureDoesNotVerify(t *testing.T) {
	name := database(t)
	key := must.Get(audit.PublicKey(filepath.Join(t.TempDir(), "audit.db")))(t)
	origin, _ := audit.OriginOf(key)
	const values = `1, 'x', 'proxy.proxied', '', '', '', '', '', '', '', '', '', '', '', '', 0, '', '', 0, 0, 0, 0, 0,
		'2026-11-29T10:22:05.937412411Z', '{}'`
	zero := strings.Repeat("0", 64)
	if out, err := server.Psql("other", name, fmt.Sprintf(`
		INSERT INTO aileron.origins (origin, key) VALUES ('%[1]s', '%[2]s');
		INSERT INTO aileron.events SELECT '%[1]s', %[3]s, '%[4]s', aileron.row_hash('%[4]s', %[3]s);
		INSERT INTO aileron.heads (origin, seq, hash, note)
			SELECT '%[1]s', 1, aileron.row_hash('%[4]s', %[3]s), ''`, origin, key, values, zero)); err != nil {
		t.Fatal(err, out)
	}
	for _, keys := range [][]string{nil, {key}} {
		v := must.Get(open(t, "auditor", name).Verify(t.Context(), "", keys))(t)
		if v.OK || len(v.Origins) != 1 || v.Origins[0].Rows != 1 ||
			!strings.Contains(fmt.Sprint(v.Origins[0].Findings), "no row of it has a signed head") {
			t.Errorf("Verify with %q = %+v", keys, v)
		}
	}
}

// Where roles may create objects in public, as in each database before PostgreSQL 15, one of theirs that fits the types
// better than PostgreSQL's own must not run with the rights of another.
func TestWhatARoleCreatesInPublicDoesNotRun(t *testing.T) {
	name, home := database(t), t.TempDir()
	server.SQL(t, name, "GRANT CREATE ON SCHEMA public TO PUBLIC")
	plant := func(function, returns string) {
		t.Helper()
		if out, err := server.Psql("other", name, fmt.Sprintf(`
			CREATE FUNCTION public.%s RETURNS %s AS $$ BEGIN RAISE 'it ran as %%', current_user; END $$
				LANGUAGE plpgsql`, function, returns)); err != nil {
			t.Fatal(err, out)
		}
	}
	plant("joined(text, bigint)", "text")
	plant("to_json(text)", "json")
	plant("added(bigint, numeric)", "numeric")
	if out, err := server.Psql("other", name, `
		CREATE OPERATOR public.|| (FUNCTION = public.joined, LEFTARG = text, RIGHTARG = bigint);
		CREATE OPERATOR public.+ (FUNCTION = public.added, LEFTARG = bigint, RIGHTARG = numeric)`); err != nil {
		t.Fatal(err, out)
	}
	write(t, home, 3, true)
	if _, err := shipper(t, home, "shipper", name).Once(t.Context()); err != nil {
		t.Errorf("ship: %v", err)
	}
	verifies(t, name, 6)
	r := must.Get(postgres.OpenReader(t.Context(), open(t, "auditor", name), ""))(t)
	if groups, err := r.Groups(t.Context(), audit.Filter{}, audit.GroupBy{Intents: true}); err != nil || len(groups) == 0 {
		t.Errorf("Groups = %v, %v", groups, err)
	}
	if _, err := r.Unfinished(t.Context(), audit.Filter{}); err != nil {
		t.Errorf("Unfinished: %v", err)
	}
}
