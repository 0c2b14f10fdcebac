package approvals

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// What is cached is read again after each change, and only then.
func TestRulesAreReadWhenTheyChange(t *testing.T) {
	home := t.TempDir()
	rules, long := In(home), time.Now().Add(-time.Hour)
	find := rules.Cached()
	subject := approval.Subject{Connector: "github://acme/x", Hash: "sha256:1", Operation: "merge"}
	if _, ok, err := find(subject); ok || err != nil {
		t.Fatalf("without a directory: %v, %v", ok, err)
	}
	keep := func(approve bool) string {
		t.Helper()
		r := approval.Rule{ID: audit.NewID(), Approve: approve, For: approval.Always, Subject: subject}
		must.Do(t, rules.Keep(r))
		return r.ID
	}
	first := keep(true)
	if r, ok, err := find(subject); !ok || r.ID != first || err != nil {
		t.Errorf("what was just kept: %+v, %v, %v", r, ok, err)
	}
	same := must.Get(os.Stat(rules.dir))(t).ModTime()
	denies := keep(false)
	must.Do(t, os.Chtimes(rules.dir, same, same)) // as on a file system whose times are coarse
	if r, _, _ := find(subject); r.ID != denies {
		t.Errorf("what denies comes first: %+v", r)
	}
	must.Do(t, os.Chtimes(rules.dir, long, long))
	_, _, err := find(subject)
	must.Do(t, err)
	must.Do(t, os.WriteFile(filepath.Join(rules.dir, denies+".json"), []byte("{"), 0o600)) // not as aileron writes
	if r, _, err := find(subject); r.ID != denies || err != nil {
		t.Errorf("a directory that is unchanged is read again: %+v, %v", r, err)
	}
	must.Do(t, os.Chtimes(rules.dir, long, long.Add(time.Second)))
	if _, _, err := find(subject); err == nil || !strings.Contains(err.Error(), denies) {
		t.Errorf("a broken file is not in the error: %v", err)
	}
	if !rules.Broken(denies) || rules.Broken(first) || rules.Broken(audit.NewID()) {
		t.Error("Broken is wrong")
	}
	must.Do(t, rules.Drop(denies))
	if r, _, err := find(subject); r.ID != first || err != nil {
		t.Errorf("after a revocation: %+v, %v", r, err)
	}
	must.Do(t, rules.Drop(first))
	if _, ok, _ := find(subject); ok {
		t.Error("a revoked decision is found")
	}
}
