package main

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/networks"
)

// Its size says nothing about what a device, a pipe or a growing file has.
func TestAFileOfUnknownSizeIsReadWithinABound(t *testing.T) {
	if data, err := networks.ReadBounded("/dev/zero", 1<<10); err == nil ||
		!strings.Contains(err.Error(), "larger than 1024 bytes") {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if data, err := networks.ReadBounded("/dev/null", 1<<10); err != nil || len(data) != 0 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
