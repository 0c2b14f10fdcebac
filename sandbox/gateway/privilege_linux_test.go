package gateway

import (
	"strings"
	"testing"
)

// The gateway serves only after the kernel has confirmed that no privilege is
// left.
func TestAThreadThatKeptAPrivilegeIsNamed(t *testing.T) {
	const dropped = "Name:\taileron\nUid:\t7\t7\t7\t7\nGid:\t7\t7\t7\t7\nGroups:\t\n" +
		"CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n" +
		"CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n"
	if err := checkThread(dropped, 7); err != nil {
		t.Errorf("all is dropped: %v", err)
	}
	for was, kept := range map[string]string{
		"Uid:\t7\t7\t7\t7": "Uid:\t7\t0\t7\t7", "Gid:\t7\t7\t7\t7": "Gid:\t7\t7\t0\t7", "Groups:\t": "Groups:\t27 ",
		"CapInh:\t0000000000000000": "CapInh:\t0000000000000400", "CapPrm:\t0000000000000000": "CapPrm:\t0000000000001000",
		"CapEff:\t0000000000000000": "CapEff:\t0000000000001000", "CapBnd:\t0000000000000000": "CapBnd:\t000001ffffffffff",
		"CapAmb:\t0000000000000000": "CapAmb:\t0000000000001000", "NoNewPrivs:\t1": "NoNewPrivs:\t0",
	} {
		name, _, _ := strings.Cut(was, ":")
		err := checkThread(strings.Replace(dropped, was, kept, 1), 7)
		if err == nil || !strings.HasPrefix(err.Error(), name+" is ") {
			t.Errorf("%q: %v, want an error that names %s", kept, err, name)
		}
		err = checkThread(strings.Replace(dropped, was+"\n", "", 1), 7)
		if err == nil || err.Error() != name+" is missing" {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
