package learn

import (
	"fmt"
	"testing"
)

// odd is a path as apt sends them.
const odd = "/debian/pool/main/a/tool/tool_1.0%7erc1_all.deb"

// added returns a tree of requests to one port.
func added(port int, requests ...Request) *Tree {
	t := &Tree{}
	for _, r := range requests {
		r.Host, r.Port, r.Row = "a.example", port, "r"
		t.Add(r)
	}
	return t
}

// A read of a path that no template can have opens no host that has templates, but for an archive in plain HTTP.
func TestAnOddPathOpensNoHost(t *testing.T) {
	narrow := Request{Method: "GET", Path: "/debian/dists/bookworm/Release"}
	read := Request{Method: "GET", Path: odd}
	refused := Request{Method: "GET", Path: odd, Refused: true}
	for name, c := range map[string]struct {
		tree    *Tree
		want    string
		leftOut int
	}{
		"an archive":        {added(80, narrow, read), "[GET ]", 0},
		"an archive's HEAD": {added(80, narrow, Request{Method: "HEAD", Path: odd}), "[HEAD  GET " + narrow.Path + "]", 0},
		"nothing else":      {added(443, read, read), "[GET ]", 0},
		"a host with TLS":   {added(443, narrow, read, read), "[GET " + narrow.Path + "]", 2},
		"refused":           {added(80, refused), "[]", 1},
		"refused beside":    {added(80, narrow, refused), "[GET " + narrow.Path + "]", 1},
		"a write": {added(80, narrow, read, Request{Method: "POST", Path: "/x"}),
			"[GET " + narrow.Path + " POST /x]", 1},
		"a refused read": {added(80, read, Request{Method: "GET", Path: "/x/y", Refused: true}), "[GET /x/y]", 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := []string{}
			for _, op := range c.tree.Operations() {
				got = append(got, op.Method+" "+op.Template())
			}
			if fmt.Sprint(got) != c.want || c.tree.LeftOut != c.leftOut {
				t.Errorf("got %v, %d left out, want %s, %d", got, c.tree.LeftOut, c.want, c.leftOut)
			}
		})
	}
}

// narrowPath returns one of 11⁵ paths, of which no compaction makes a template.
func narrowPath(i int) (path string) {
	for range 5 {
		path += "/" + string(rune('a'+i%11)) + "x"
		i /= 11
	}
	return path
}

// A tree that no compaction makes smaller is compacted once, and counts on what it has.
func TestAFullTreeIsCompactedOnce(t *testing.T) {
	var tree Tree
	add := func(i int, method string) bool {
		return tree.Add(Request{Host: "a.example", Port: 443, Method: method, Path: narrowPath(i), Row: "r"})
	}
	i := 0
	for ; !tree.closed && i < 60_000; i++ {
		add(i, "GET")
	}
	if !tree.closed || tree.nodes > maxNodes+8 {
		t.Fatalf("after %d paths, there are %d nodes, closed is %t", i, tree.nodes, tree.closed)
	}
	nodes, left := tree.nodes, tree.LeftOut
	for more := i; more < i+20; more++ {
		add(more, "GET")
	}
	if tree.nodes != nodes || tree.LeftOut != left+20 {
		t.Errorf("of 20 further paths, %d are left out, and %d nodes are %d", tree.LeftOut-left, nodes, tree.nodes)
	}
	if n := testing.AllocsPerRun(10, func() { add(i, "GET") }); n > 100 {
		t.Errorf("a further path is %.0f allocations: the tree is compacted again", n)
	}
	if !add(0, "GET") || add(0, "POST") {
		t.Error("what is in the tree is not counted, or what is not there is")
	}
}

// Methods are bounded as nodes are.
func TestMethodsAreBounded(t *testing.T) {
	var tree Tree
	for i := range 3000 {
		for m := range 20 {
			tree.Add(Request{Host: "a.example", Port: 443, Method: fmt.Sprintf("M%d", m), Path: narrowPath(i),
				Row: "r"})
		}
		if i == 0 && len(tree.Operations()) != maxMethods {
			t.Fatalf("20 methods of a path are %d operations", len(tree.Operations()))
		}
		if tree.closed {
			break
		}
	}
	if ops := tree.Operations(); len(ops) > maxNodes || !tree.closed {
		t.Errorf("%d operations, closed is %t", len(ops), tree.closed)
	}
}

// Paths of which every compaction makes room, for more of them, are compacted a few times, and then counted.
func TestATreeIsCompactedAFewTimes(t *testing.T) {
	var tree Tree
	i := 0
	for ; i < 24_000 && !tree.closed; i++ {
		path := ""
		for j := range 30 {
			path += fmt.Sprintf("/word%c%c%c", 'a'+(i*7+j)%26, 'a'+(i/26+j)%26, 'a'+(i/676)%26)
		}
		tree.Add(Request{Host: fmt.Sprintf("a%d.example", i%50), Port: 443, Method: "GET", Path: path, Row: "r"})
	}
	if tree.compacted != maxCompact || tree.nodes > maxNodes {
		t.Errorf("after %d paths, the tree was compacted %d times, and has %d nodes", i, tree.compacted, tree.nodes)
	}
}
