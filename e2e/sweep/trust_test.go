package sweep

import (
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/e2e/must"
)

// certutil stands for NSS's: it keeps one root in a file beside the database, or fails if there is a file named broken.
// What the real one does is tested in e2e/trust.
const certutil = `#!/bin/sh
cd "$HOME/.pki/nssdb" || exit 1
[ ! -e broken ] || { echo "certutil: function failed: SEC_ERROR_PKCS11_GENERAL_ERROR" >&2; exit 255; }
case $1 in
-A) cat >root.pem ;;
-D) rm -f root.pem ;;
-L) [ ! -e root.pem ] && { echo "certutil: Could not find cert" >&2; exit 255; }; cat root.pem ;;
esac
`

// trust adds the root of a session that runs to a trust store and removes it, and fails at both.
func (p *person) trust(id string) {
	p.t.Helper()
	bin, db := filepath.Join(p.dir, "bin"), filepath.Join(p.dir, ".pki", "nssdb")
	for _, dir := range []string{bin, db} {
		must.Do(p.t, os.MkdirAll(dir, 0o700))
	}
	must.Do(p.t, os.WriteFile(filepath.Join(bin, "certutil"), []byte(certutil), 0o700))
	p.write(filepath.Join(db, "cert9.db"), "a database")
	broken := filepath.Join(db, "broken")
	p.write(broken, "")
	add := []string{"ca", "trust", "--store", "nss", "--yes", id}
	p.refused("", add...)
	must.Do(p.t, os.Remove(broken))
	p.refused("", add[:4]...)
	p.must(add...)
	p.must(append(add, "--json")...)
	p.write(broken, "")
	p.refused("", "ca", "untrust")
	p.run("doctor")
	must.Do(p.t, os.Remove(broken))
	p.must("ca", "untrust", id, "--json")
}
