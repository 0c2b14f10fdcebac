// Package spending sums what requests have used, and what it costs where the owner gave prices. [New] returns a [Sum],
// [Sum.Add] takes rows of the audit log, and [Sum.Uses] returns what they come to.
package spending

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/proxy/meter"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
)

// Use is what the requests have used that have a name in common.
type Use struct {
	Name      string           `json:"name"` // "" of those without one
	Requests  int64            `json:"requests"`
	Bytes     int64            `json:"bytes"` // of the bodies of requests and responses
	Meters    map[string]int64 `json:"meters"`
	Estimated int64            `json:"estimated"`        // requests of which a meter was estimated
	Unknown   int64            `json:"unknown_outcomes"` // requests of a killed session; what they used is not known
	Cost      *float64         `json:"cost,omitempty"`   // nil: nothing of it has a price
	Currency  string           `json:"currency,omitempty"`
	Unpriced  bool             `json:"unpriced,omitempty"` // a part of what the meters count has no price
}

// MaxNames bounds the names that are told apart: an upstream chooses that of its model. What is beyond is [Other].
const MaxNames = 4096

// Other is the name of what [MaxNames] leaves out.
const Other = "(others)"

// Sum adds up the use of requests by a name. It is not safe for concurrent use.
type Sum struct {
	by     func(*audit.Row) string
	most   int
	prices config.Prices
	uses   map[string]*Use
	rates  map[[2]string]map[string]float64 // by model and connector
}

// New returns a sum of nothing, by what the function returns, of at most so many names.
func New(prices config.Prices, most int, by func(*audit.Row) string) *Sum {
	return &Sum{by: by, most: most, prices: prices, uses: map[string]*Use{}, rates: map[[2]string]map[string]float64{}}
}

// Add adds what the row of an outcome says. Others, and denials, have used nothing, but for a request that was sent and
// got no response: its meters count in budgets, and so they do here.
func (s *Sum) Add(r *audit.Row) {
	meters := MetersOf(r)
	switch {
	case r.Event == audit.EventProxyUnknown:
		u := s.use(s.by(r))
		u.Requests++
		u.Unknown++
		return
	case r.Decision == audit.DecisionRejected && usesAny(meters):
	case r.Decision != audit.DecisionProxied && r.Decision != audit.DecisionUpgrade &&
		r.Decision != audit.DecisionPassthrough:
		return
	}
	u := s.use(s.by(r))
	u.Requests++
	u.Bytes += r.RequestBytes + r.ResponseBytes
	if r.Fields["meters_estimated"] != nil {
		u.Estimated++
	}
	rates := s.ratesOf(ModelOf(r), r.ConnectorFQN)
	for name, n := range meters {
		u.Meters[name] = meter.Sum(u.Meters[name], n)
		if _, priced := rates[name]; !priced && n > 0 {
			u.Unpriced = true
		}
		u.pay(rates[name], n)
	}
	u.pay(rates[meter.Requests], 1)
	u.pay(rates[meter.Bytes], r.RequestBytes+r.ResponseBytes)
}

// usesAny reports whether a meter has counted anything.
func usesAny(meters map[string]int64) bool {
	for _, n := range meters {
		if n > 0 {
			return true
		}
	}
	return false
}

// pay adds what n of a meter cost, of which a million has a price; 0 is none.
func (u *Use) pay(price float64, n int64) {
	if price == 0 {
		return
	}
	if u.Cost == nil {
		u.Cost = new(float64)
	}
	*u.Cost += price * float64(n) / 1e6
}

func (s *Sum) use(name string) *Use {
	if s.uses[name] == nil && len(s.uses) >= s.most {
		name = Other
	}
	u := s.uses[name]
	if u == nil {
		name = strings.Clone(name) // a row's strings are parts of a request, which must not stay
		u = &Use{Name: name, Meters: map[string]int64{}, Currency: s.prices.Currency}
		s.uses[name] = u
	}
	return u
}

// ratesOf returns the prices of a model and a connector.
func (s *Sum) ratesOf(model, fqn string) map[string]float64 {
	key := [2]string{model, fqn}
	rates, known := s.rates[key]
	if !known {
		rates = s.prices.Of(model, Short(fqn), fqn)
		if len(s.rates) < s.most {
			s.rates[[2]string{strings.Clone(model), strings.Clone(fqn)}] = rates
		}
	}
	return rates
}

// Uses returns the sums, of the most that meters count first, and else of the most requests.
func (s *Sum) Uses() []Use {
	all := make([]Use, 0, len(s.uses))
	for _, u := range s.uses {
		use := *u
		use.Meters = maps.Clone(u.Meters)
		if use.Cost == nil {
			use.Currency, use.Unpriced = "", false
		} else {
			cost := math.Round(*u.Cost*1e6) / 1e6
			use.Cost = &cost
		}
		all = append(all, use)
	}
	slices.SortFunc(all, func(a, b Use) int {
		return cmp.Or(cmp.Compare(b.metered(), a.metered()), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (u Use) metered() (n int64) {
	for _, of := range u.Meters {
		n = meter.Sum(n, of)
	}
	return n
}

// MetersOf returns what a row says that its request has used. Rows of the log have other numbers than those that are
// about to be written.
func MetersOf(r *audit.Row) map[string]int64 {
	switch found := r.Fields["meters"].(type) {
	case map[string]int64:
		return found
	case map[string]any:
		all := map[string]int64{}
		for name, v := range found {
			if n, ok := v.(float64); ok && n >= 0 && n <= 1<<50 && spec.IsMeter(name) {
				all[name] = int64(n)
			}
		}
		return all
	}
	return nil
}

// ModelOf returns the model that a row's meters are of, "" if it is not known. A connector may have declared its name
// as a value of the row; one that is no short word is none.
func ModelOf(r *audit.Row) string {
	for _, field := range []string{"meters_model", "model"} {
		if name, _ := r.Fields[field].(string); meter.IsModel(name) && r.Fields["meters"] != nil {
			return name
		}
	}
	return ""
}

// Short returns the short name of a connector.
func Short(fqn string) string {
	if name, known := catalog.Name(spec.FQN(fqn)); known {
		return name
	}
	return fqn[strings.LastIndexByte(fqn, '/')+1:]
}
