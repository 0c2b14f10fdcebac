package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Budget is how much may be used up, by the names of meters.
type Budget struct {
	Session map[string]Amount            `toml:"session"` // by each session
	Day     map[string]Amount            `toml:"day"`     // by all sessions of the home, in a day
	Binding map[string]map[string]Amount `toml:"binding"` // by what carries a credential, by its name, in a day

	AtLimit string `toml:"at_limit"` // what becomes of the next request: deny (default) or ask
}

// Amount is a positive number, written as 5000, "5k", "2M" or "1.5G".
type Amount int64

// maxAmount bounds an amount.
const maxAmount = 1 << 50

// UnmarshalTOML implements the interface of the TOML decoder.
func (m *Amount) UnmarshalTOML(value any) (err error) {
	*m, err = parseAmount(fmt.Sprint(value))
	return err
}

func parseAmount(text string) (Amount, error) {
	unit := 1.0
	for suffix, factor := range map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = rest, factor
			break
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if n *= unit; err != nil || math.IsNaN(n) || n < 1 || n > maxAmount {
		return 0, fmt.Errorf(`%q is no amount; it must be a number from 1 to 2^50, such as 5000, "5k" or "2M"`, text)
	}
	return Amount(n), nil
}

// meterName is the form of a meter's name, as in a connector.
var meterName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
})

// ParseBudget reads NAME=AMOUNT, a limit of a session.
func ParseBudget(text string) (name string, most Amount, err error) {
	name, amount, ok := strings.Cut(text, "=")
	if !ok || !meterName().MatchString(name) {
		return "", 0, fmt.Errorf("%q is not NAME=AMOUNT, such as output_tokens=2M", text)
	}
	most, err = parseAmount(amount)
	return name, most, err
}

// maxBudget bounds how many limits a table has.
const maxBudget = 64

// bindingName is the form of a credential's name: KIND/SERVICE/IDENTITY.
var bindingName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9_]{1,32}(/[A-Za-z0-9._@+-]{1,200}){2}$`)
})

// check returns an error for a name that no meter has, or no credential.
func (b Budget) check() error {
	if b.AtLimit != "" && b.AtLimit != "deny" && b.AtLimit != "ask" {
		return fmt.Errorf(`budget.at_limit is %q; it must be "deny" or "ask"`, b.AtLimit)
	}
	if len(b.Binding) > maxBudget {
		return fmt.Errorf("budget.binding has more than %d entries", maxBudget)
	}
	faults := []error{checkBudget("budget.session", b.Session), checkBudget("budget.day", b.Day)}
	for _, name := range slices.Sorted(maps.Keys(b.Binding)) {
		if !bindingName().MatchString(name) {
			faults = append(faults, fmt.Errorf(`budget.binding has the name %q; it must be that of a credential in quotation `+
				`marks, such as [budget.binding."api_key/aileron-connector-anthropic/work"]`, name))
		}
		faults = append(faults, checkBudget(fmt.Sprintf("budget.binding.%q", name), b.Binding[name]))
	}
	return errors.Join(faults...)
}

func checkBudget(key string, limits map[string]Amount) error {
	if len(limits) > maxBudget {
		return fmt.Errorf("%s has more than %d entries", key, maxBudget)
	}
	for name := range limits {
		if !meterName().MatchString(name) {
			return fmt.Errorf("%s has the name %q; it must be that of a meter, such as output_tokens", key, name)
		}
	}
	return nil
}

// OfSession returns the limits of a session: those of the file, flags in their place (NAME=AMOUNT), and at most those
// of a project.
func (b Budget) OfSession(flags []string, project map[string]Amount) (map[string]int64, error) {
	limits := Limits64(b.Session)
	for _, text := range flags {
		name, most, err := ParseBudget(text)
		if err != nil {
			return nil, err
		}
		limits[name] = int64(most)
	}
	for name, most := range project {
		if is, ok := limits[name]; !ok || int64(most) < is {
			limits[name] = int64(most)
		}
	}
	return limits, nil
}

// Limits64 returns limits as numbers.
func Limits64(limits map[string]Amount) map[string]int64 {
	all := map[string]int64{}
	for name, most := range limits {
		all[name] = int64(most)
	}
	return all
}
