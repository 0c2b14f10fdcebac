package native

import "fmt"

// AppArmorProfile returns a profile for this program's file that lets it make user namespaces where AppArmor otherwise
// lets none (Ubuntu 24.04). It confines nothing.
func AppArmorProfile(binary string) string {
	return fmt.Sprintf(`# Lets aileron make the user namespaces of --sandbox=native. Load it with: apparmor_parser -r FILE
abi <abi/4.0>,
include <tunables/global>

profile aileron %q flags=(unconfined) {
  userns,
  include if exists <local/aileron>
}
`, binary)
}
