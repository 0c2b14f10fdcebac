package launch

import (
	"os"
	"path/filepath"
	"testing"
)

// newZones returns a directory with two time zones of this machine's database
// and, in its /etc/localtime, a link to the first.
func newZones(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"etc", "usr/share/zoneinfo/Europe"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"Europe/Berlin", "UTC"} {
		data, err := os.ReadFile("/usr/share/zoneinfo/" + name)
		if err != nil {
			t.Skip("this machine has no time zones: ", err)
		}
		if err := os.WriteFile(filepath.Join(root, "usr/share/zoneinfo", name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "usr/share/zoneinfo/leap"), []byte("# text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../usr/share/zoneinfo/Europe/Berlin", filepath.Join(root, "etc/localtime")); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestTheHostsTimeZoneIsFound(t *testing.T) {
	root := newZones(t)
	for tz, want := range map[string]string{
		"": "Europe/Berlin", "UTC": "UTC", ":UTC": "UTC",
		"CET-1CEST": "Europe/Berlin", "../../../etc/localtime": "Europe/Berlin", "leap": "Europe/Berlin",
		"Europe": "Europe/Berlin", "/etc/passwd": "Europe/Berlin",
	} {
		if got := hostZone(tz, root); got.name != want || len(got.data) == 0 {
			t.Errorf("hostZone(%q) = %q with %d bytes, want %s", tz, got.name, len(got.data), want)
		}
	}
	if err := os.Remove(filepath.Join(root, "etc/localtime")); err != nil {
		t.Fatal(err)
	}
	if got := hostZone("", root); got.data != nil {
		t.Errorf("hostZone without /etc/localtime = %q", got.name)
	}
}

func TestAFileThatIsNoTimeZoneIsNotHandedOver(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "etc/localtime")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"", "secret", "TZif2 and a lie"} {
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := hostZone("", root); got.data != nil {
			t.Errorf("hostZone with a file of %q = %q", data, got.data)
		}
	}
}
