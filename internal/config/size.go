package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MemorySize is a number of bytes, written as "512m", "4g", "1.5GiB" or a
// number; 0 and "none" mean no limit.
type MemorySize int64

// minSandboxMemory is the least memory with which a shell starts in a sandbox.
const minSandboxMemory = 16 << 20

// UnmarshalTOML implements the interface of the TOML decoder.
func (m *MemorySize) UnmarshalTOML(value any) error {
	n, err := parseMemory(fmt.Sprint(value))
	*m = MemorySize(n)
	return err
}

func parseMemory(text string) (int64, error) {
	bad := fmt.Errorf(`sandbox.memory is %q; it must be a size such as "512m" or "4g", or "none"`, text)
	number := strings.ToLower(strings.TrimSpace(text))
	if number == "none" {
		return 0, nil
	}
	unit := 1.0
	for i, suffix := range []string{"k", "m", "g", "t"} {
		for _, form := range []string{suffix + "ib", suffix + "b", suffix} {
			if rest, ok := strings.CutSuffix(number, form); ok {
				number, unit = strings.TrimSpace(rest), math.Pow(1024, float64(i+1))
				break
			}
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	switch n *= unit; {
	case err != nil || math.IsNaN(n) || n < 0 || n >= 1<<62:
		return 0, bad
	case n > 0 && n < minSandboxMemory:
		return 0, fmt.Errorf(`sandbox.memory is %q; it must be at least "16m", or no command starts; `+
			`"none" removes the limit`, text)
	}
	return int64(n), nil
}

// CPUCount is a number of CPUs; 0 and "none" mean no limit.
type CPUCount float64

// UnmarshalTOML implements the interface of the TOML decoder.
func (c *CPUCount) UnmarshalTOML(value any) error {
	text := fmt.Sprint(value)
	if text == "none" {
		*c = 0
		return nil
	}
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(n) || n < 0 || n > 1<<20:
		return fmt.Errorf(`sandbox.cpus is %q; it must be a number such as 1.5, or "none"`, text)
	case n > 0 && n < 0.01:
		return errors.New(`sandbox.cpus is less than 0.01, the least that engines accept; "none" removes the limit`)
	}
	*c = CPUCount(n)
	return nil
}
