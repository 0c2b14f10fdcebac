package spec

import (
	"fmt"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// many builds n operations of one kind of real life: a tenth as many hosts, a
// few methods, literal and variable segments; of two connectors that each use
// a credential on every host.
func many(n int) []*Connector {
	one, two := &Connector{FQN: "hub://a/one", Version: "1.0.0"}, &Connector{FQN: "hub://a/two", Version: "1.0.0"}
	for i := range n {
		c := []*Connector{one, two}[i%2]
		text := fmt.Sprintf("/%s/v1/kind%d/{id}/things/{thing}", c.FQN.Service(), i)
		if i%3 == 0 {
			text = fmt.Sprintf("/%s/v1/kind%d/{path...}", c.FQN.Service(), i)
		}
		tmpl, err := ParseTemplate(text)
		if err != nil {
			panic(err)
		}
		host := HostPattern{Name: fmt.Sprintf("api%d.example", i/2%max(n/1000, 1)), Port: 443}
		op := &Operation{
			Connector: c, Tool: "tool", Name: fmt.Sprint("op", i),
			Method: []string{"GET", "POST", "PUT"}[i%3], Path: tmpl, Hosts: []HostPattern{host},
			Injection: &Injection{Kind: KindBearer},
		}
		if len(c.Tools) == 0 {
			c.Tools = []Tool{{Name: "tool"}}
		}
		c.Tools[0].Operations = append(c.Tools[0].Operations, op)
	}
	return []*Connector{one, two}
}

func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10000, 100000} {
		ix := must.Get(NewIndex(many(n)))(b)
		hit := Target{Scheme: "https", Host: "api0.example", Port: 443, Method: "POST", Path: "/two/v1/kind1/42/things/7"}
		if _, no := ix.Match(hit); no != nil {
			b.Fatal(no)
		}
		miss := Target{Scheme: "https", Host: "api0.example", Port: 443, Method: "DELETE", Path: "/two/v1/kind1/42/things/7"}
		b.Run(fmt.Sprintf("hit/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ix.Match(hit)
			}
		})
		b.Run(fmt.Sprintf("miss/%d", n), func(b *testing.B) {
			for b.Loop() {
				ix.Match(miss)
			}
		})
	}
}

func BenchmarkNewIndex(b *testing.B) {
	for _, n := range []int{10, 1000, 100000} {
		connectors := many(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must.Get(NewIndex(connectors))(b)
			}
		})
	}
}
