package config_test

import (
	"maps"
	"testing"

	"github.com/ALRubinger/aileron/internal/config"
)

func TestABudgetIsReadWithItsUnits(t *testing.T) {
	c, err := read(t, "[budget.session]\noutput_tokens = \"2M\"\nrequests = 20\nbytes = \"1.5k\"\n")
	got, err2 := c.Budget.OfSession(nil, nil)
	want := map[string]int64{"output_tokens": 2e6, "requests": 20, "bytes": 1500}
	if err != nil || err2 != nil || !maps.Equal(got, want) {
		t.Errorf("the limits are %v (%v, %v), want %v", got, err, err2, want)
	}
}

func TestABudgetThatLimitsNothingIsRefused(t *testing.T) {
	for _, amount := range []string{"0", "-1", `"2MB"`, `"NaN"`, `"inf"`, `"1e300"`, `""`} {
		check(t, "[budget.session]\nrequests = "+amount+"\n", "is no amount")
	}
	check(t, "[budget.session]\nOutput = 1\n", `budget.session has the name "Output"`)
	check(t, "[budget]\nsesion = 1\n", "unknown key budget.sesion")
}

// A project may lower the limits of its sessions, and never raise them.
func TestAProjectOnlyLowersABudget(t *testing.T) {
	b := config.Budget{Session: map[string]config.Amount{"requests": 10, "bytes": 10}}
	got, err := b.OfSession([]string{"requests=20"}, map[string]config.Amount{"requests": 30, "bytes": 5, "tokens": 7})
	if want := map[string]int64{"requests": 20, "bytes": 5, "tokens": 7}; err != nil || !maps.Equal(got, want) {
		t.Errorf("the limits are %v (%v), want %v", got, err, want)
	}
	if _, err := b.OfSession([]string{"requests"}, nil); err == nil {
		t.Error("a flag without an amount is accepted")
	}
}
