package config_test

import (
	"strings"
	"testing"
)

func TestTheLimitsOfASandboxAreRead(t *testing.T) {
	for _, c := range []struct {
		text   string
		memory int64 // -1: not set
		cpus   float64
		fault  string
	}{
		{"", -1, -1, ""},
		{`memory = "512m"`, 512 << 20, -1, ""},
		{`memory = "1.5GiB"`, 3 << 29, -1, ""},
		{`memory = "2 gb"`, 2 << 30, -1, ""},
		{`memory = 67108864`, 64 << 20, -1, ""},
		{`memory = "0"`, 0, -1, ""},
		{`memory = 0`, 0, -1, ""},
		{`memory = "none"`, 0, -1, ""},
		{`cpus = 1.5`, -1, 1.5, ""},
		{`cpus = 2`, -1, 2, ""},
		{`cpus = "0.5"`, -1, 0.5, ""},
		{`cpus = 0`, -1, 0, ""},
		{`cpus = "none"`, -1, 0, ""},
		{`engine_timeout = "10m"`, -1, -1, ""},
		{`memory = "8m"`, 0, 0, `at least "16m"`},
		{`memory = 512`, 0, 0, `which are bytes (did you mean "512m"?); it must be at least "16m"`},
		{`memory = "4"`, 0, 0, `did you mean "4g"?`},
		{`memory = "-1g"`, 0, 0, `"-1g"; it must be a size`},
		{`memory = "much"`, 0, 0, `"much"; it must be a size`},
		{`memory = "nan"`, 0, 0, `it must be a size`},
		{`memory = "9e99t"`, 0, 0, `it must be a size`},
		{`memory = true`, 0, 0, `it must be a size`},
		{`cpus = -1`, 0, 0, `"-1"; it must be a number`},
		{`cpus = nan`, 0, 0, `it must be a number`},
		{`cpus = "all"`, 0, 0, `"all"; it must be a number`},
		{`cpus = 0.001`, 0, 0, "less than 0.01"},
		{`engine_timeout = "0s"`, 0, 0, "not positive"},
		{`swap = "1g"`, 0, 0, "unknown key sandbox.swap"},
	} {
		t.Run(c.text, func(t *testing.T) {
			conf, err := read(t, "[sandbox]\n"+c.text+"\n")
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("Read: %v, want %q", err, c.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			memory, cpus := int64(-1), -1.0
			if conf.Sandbox.Memory != nil {
				memory = int64(*conf.Sandbox.Memory)
			}
			if conf.Sandbox.CPUs != nil {
				cpus = float64(*conf.Sandbox.CPUs)
			}
			if memory != c.memory || cpus != c.cpus {
				t.Errorf("memory %d, cpus %v; want %d and %v", memory, cpus, c.memory, c.cpus)
			}
		})
	}
}
