package spec

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec/hosts"
)

// HostPattern is an allowed host and port.
type HostPattern = hosts.Pattern

// ParseHost is [hosts.Parse].
func ParseHost(s string) (HostPattern, error) { return hosts.Parse(s) }

// declaredHost reads a host of a specification, in which each has one spelling: it has no final dot.
func declaredHost(s string) (HostPattern, error) {
	if name, _, _ := strings.Cut(s, ":"); len(name) > 1 && strings.HasSuffix(name, ".") {
		return HostPattern{}, fmt.Errorf("%s has a final dot; write %s", quote(s), quote(strings.TrimRight(name, ".")))
	}
	return ParseHost(s)
}

func quote(s string) string { return strconv.Quote(s) }
