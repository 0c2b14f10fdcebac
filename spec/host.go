package spec

import (
	"strconv"

	"github.com/ALRubinger/aileron/spec/hosts"
)

// HostPattern is an allowed host and port.
type HostPattern = hosts.Pattern

// ParseHost is [hosts.Parse].
func ParseHost(s string) (HostPattern, error) { return hosts.Parse(s) }

func quote(s string) string { return strconv.Quote(s) }
