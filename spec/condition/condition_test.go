package condition

import (
	"strings"
	"testing"
)

// What a server may read as a value for which it asks is not told apart from it.
func TestAConditionDoubtsWhatServersReadDifferently(t *testing.T) {
	branch := Condition{In: "path", Name: "b", Type: "string", Values: []string{"main", "release/*"}}
	for value, want := range map[string]Answer{
		"main": Holds, "MAIN": Holds, "%6Dain": Holds, "m%61in": Holds, "release%2Fx": Holds, "release/x/y": Holds,
		"RELEASE/": InDoubt, "mainx": HoldsNot, "dev": HoldsNot, "release": HoldsNot, "a%20b": HoldsNot,
		"%256Dain": InDoubt, "main%00": InDoubt, "main%20": InDoubt, "+main": InDoubt, "main;x=1": InDoubt,
		"main%3Bx": InDoubt, "main%2F": InDoubt, "main.json": InDoubt, "dev.json": HoldsNot, "main%3Fx": InDoubt,
		"m\u00e1in": InDoubt, "%EF%BD%8Dain": InDoubt, "%zz": InDoubt, "": InDoubt, "x%2F..%2Fmain": InDoubt,
		"release%5Cx": InDoubt, "x//y": InDoubt, "main%23x": InDoubt, "v1.2.3": HoldsNot, "dev%2Frelease.v2": HoldsNot,
	} {
		if got := branch.InPath(value); got != want {
			t.Errorf("the path %q: %v, want %v", value, got, want)
		}
	}
	q := Condition{In: "query", Name: "to.branch", Type: "string", Values: []string{"main"}}
	for query, want := range map[string]Answer{
		"to.branch=main": Holds, "to.branch=dev": HoldsNot, "a=1&to.branch=dev": HoldsNot, "t%6F.branch=MAIN": Holds,
		"": InDoubt, "a=main": InDoubt, "to.branch": InDoubt, "to.branch=": InDoubt, "to.branch=dev&to.branch=main": InDoubt,
		"to.branch=dev&To.Branch=main": InDoubt, "to.branch=dev&to.branch[]=main": InDoubt,
		"to.branch=dev&to_branch=main": InDoubt, "to.branch=dev&+to.branch=main": InDoubt,
		"to.branch=dev;to.branch=main": InDoubt, "to.branch=dev&to.branch%00=main": InDoubt, "to.branch=%zz": InDoubt,
		"to.branch=dev%26to.branch=main": InDoubt, "%zz=1&to.branch=dev": InDoubt, "to.branch=dev&to%5Bbranch=main": InDoubt,
		"to.branch=dev&to[branch]=main": InDoubt, "to.branch=dev&[to.branch=main": InDoubt,
		"to.branch=dev&to.branch]=main":                  InDoubt,
		strings.Repeat("a=1&", 199) + "to.branch=dev":    HoldsNot,
		strings.Repeat("a=1&", 200) + "to.branch=dev":    InDoubt,
		strings.Repeat("%61=1&", 1000) + "to.branch=dev": InDoubt,
	} {
		if got := q.InQuery(query); got != want {
			t.Errorf("the query %q: %v, want %v", query, got, want)
		}
	}
	id := Condition{In: "path", Name: "id", Type: "string", Values: []string{"1", "20*"}}
	for value, want := range map[string]Answer{
		"1": Holds, "01": InDoubt, "1-x": InDoubt, "-1": InDoubt, "0x1": InDoubt, "1.0": InDoubt, "2": HoldsNot,
		"10":  HoldsNot,
		"200": Holds, "0200": InDoubt, "x1": HoldsNot, "3-1": HoldsNot,
	} {
		if got := id.InPath(value); got != want {
			t.Errorf("the number %q: %v, want %v", value, got, want)
		}
	}
	at := Condition{In: "body", Name: "path", Type: "string", Values: []string{"secrets/*", "main"}}
	for value, want := range map[string]Answer{
		"/secrets/x": InDoubt, "secrets/x": Holds, "/main": InDoubt, "main/": InDoubt, `"main"`: InDoubt, "dev,main": InDoubt,
		"dev, main": InDoubt, "/public/x": HoldsNot, "dev,x": HoldsNot,
	} {
		if got := at.Judge(value); got != want {
			t.Errorf("the text %q: %v, want %v", value, got, want)
		}
	}
	n := Condition{In: "query", Name: "n", Type: "integer", Values: []string{"7"}}
	yes := Condition{In: "query", Name: "n", Type: "boolean", Values: []string{"true"}}
	for value, want := range map[string][2]Answer{
		"7": {Holds, InDoubt}, "8": {HoldsNot, InDoubt}, "07": {}, "7.0": {}, "7e0": {}, "+7": {}, "0x7": {}, "1_0": {},
		"9007199254740993": {}, "true": {InDoubt, Holds}, "false": {InDoubt, HoldsNot}, "True": {}, "1": {HoldsNot, InDoubt},
	} {
		if got := [2]Answer{n.InQuery("n=" + value), yes.InQuery("n=" + value)}; got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

// What a publisher wrote is not read as words of aileron's.
func TestTheWordsOfAConditionAreNotItsValues(t *testing.T) {
	c := Condition{In: "path", Name: "id", Values: []string{"main", "release/*", "none or any other value", "NEVER", "a,b",
		"it's", `"x"`, "[z]"}}
	want := `path.id is main or release/* or "none or any other value" or "NEVER" or "a,b" or "it's" or "\"x\"" or "[z]"`
	if got := c.String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
