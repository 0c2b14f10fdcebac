package matrix

import (
	"fmt"
	"slices"
	"strings"
)

// fails is what does not work, and why; docs/trust.md lists it for people. A
// key is a cell's name, CLIENT/TRANSFER/MODE.
var fails = map[string]string{}

func knownTo(c cell) (bool, string) {
	reason, ok := fails[c.name()]
	return ok, reason
}

// table is the matrix as Markdown.
func table(cells []cell) string {
	var clients, transfers []string
	found := map[string]cell{}
	for _, c := range cells {
		if !slices.Contains(clients, c.Client) {
			clients = append(clients, c.Client)
		}
		if !slices.Contains(transfers, c.Transfer) {
			transfers = append(transfers, c.Transfer)
		}
		found[c.name()] = c
	}
	var b strings.Builder
	b.WriteString("| client |")
	for _, tr := range transfers {
		fmt.Fprintf(&b, " %s |", titles[tr])
	}
	b.WriteString(" goes by |\n|---|" + strings.Repeat("---|", len(transfers)+1) + "\n")
	for _, client := range clients {
		fmt.Fprintf(&b, "| %s |", client)
		ways := map[string]bool{}
		for _, tr := range transfers {
			with, ran := found[client+"/"+tr+"/with"]
			without := found[client+"/"+tr+"/without"]
			if ran {
				if with.Way != "" {
					ways[with.Way] = true
				}
				fmt.Fprintf(&b, " %s / %s |", mark(with), mark(without))
			} else {
				b.WriteString(" – |")
			}
		}
		var all []string
		for way := range ways {
			all = append(all, way)
		}
		slices.Sort(all)
		fmt.Fprintf(&b, " %s |\n", strings.Join(all, ", "))
	}
	return b.String()
}

var titles = map[string]string{"small": "small GET", "big": "50 MB", "events": "SSE", "push": "push 100 MB",
	"fetch": "fetch"}

func mark(c cell) string {
	if c.trouble == "" {
		return "ok"
	}
	return "**fails**"
}
