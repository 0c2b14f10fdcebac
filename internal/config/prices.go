package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Prices are what a million of a meter costs. The model's price comes before the connector's.
type Prices struct {
	Currency  string                        `toml:"currency"`  // a word of the owner's
	Model     map[string]map[string]float64 `toml:"model"`     // by a model's name, or its beginning with a *, and meter
	Connector map[string]map[string]float64 `toml:"connector"` // by a connector's FQN or short name, and meter
}

// The bounds of prices.
const (
	maxPrices = 256 // of models, and of connectors
	maxPrice  = 1e9
)

// currencyForm is a word or a sign.
var currencyForm = regexp.MustCompile(`^[\p{L}\p{Sc}]{1,8}$`)

// check returns an error for what is no price.
func (p Prices) check() error {
	var faults []error
	if p.Currency != "" && !currencyForm.MatchString(p.Currency) {
		faults = append(faults, fmt.Errorf("prices.currency is %q; it must be a word of at most 8 letters, such as EUR",
			p.Currency))
	}
	for _, table := range []struct {
		key string
		of  map[string]map[string]float64
	}{{"prices.model", p.Model}, {"prices.connector", p.Connector}} {
		if len(table.of) > maxPrices {
			faults = append(faults, fmt.Errorf("%s has more than %d entries", table.key, maxPrices))
		}
		for _, name := range slices.Sorted(maps.Keys(table.of)) {
			for meter, price := range table.of[name] {
				if !meterName().MatchString(meter) || math.IsNaN(price) || price < 0 || price > maxPrice {
					faults = append(faults, fmt.Errorf("%s.%q has %s = %v; it must be the name of a meter and a price for a "+
						"million of it, from 0 to %v", table.key, name, meter, price, maxPrice))
				}
			}
		}
	}
	return errors.Join(faults...)
}

// Of returns what a million of each meter costs of a model and a connector, whose names are its FQN and its short one.
// Of patterns the longest counts.
func (p Prices) Of(model string, connector ...string) map[string]float64 {
	all := map[string]float64{}
	for _, name := range connector {
		maps.Copy(all, p.Connector[name])
	}
	best := ""
	for name := range p.Model {
		beginning, isPattern := strings.CutSuffix(name, "*")
		if name == model || isPattern && model != "" && strings.HasPrefix(model, beginning) &&
			best != model && len(name) > len(best) {
			best = name
		}
	}
	maps.Copy(all, p.Model[best])
	return all
}
