package review

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/audit"
)

// Subject returns what an event is about: its request, its session, its binding or its connector. It is not yet safe to
// print.
func Subject(r audit.Row) string {
	if r.Host != "" {
		port := ""
		if r.Port != 443 && r.Port != 0 {
			port = ":" + strconv.Itoa(r.Port)
		}
		return strings.TrimSpace(r.Method + " " + r.Host + port + trail(r))
	}
	field := func(name string) string { s, _ := r.Fields[name].(string); return s }
	switch {
	case r.Method != "":
		return r.Method
	case r.Event == audit.EventBroken:
		return brokenSubject(r)
	case r.Event == audit.EventRecovered:
		return recoveredSubject(r)
	case r.Event == audit.EventPruned:
		return prunedSubject(r)
	case r.Event == audit.EventSessionStarted:
		return strings.TrimSpace(field("mode") + " " + field("agent"))
	case r.Binding != "":
		return r.Binding
	case r.ConnectorFQN != "":
		return strings.TrimSuffix(r.ConnectorFQN+"@"+r.ConnectorVersion, "@")
	}
	return cmp.Or(field("cause"), field("error"))
}

// trail returns the path, to be appended to the host. A target that is not a path is set apart, and the host itself,
// which is the target of a CONNECT, is not repeated.
func trail(r audit.Row) string {
	if r.Path == "" || r.Path[0] == '/' {
		return r.Path
	}
	if r.Path == r.Host || strings.HasPrefix(r.Path, r.Host+":") {
		return ""
	}
	return " " + r.Path
}

// brokenSubject returns which event audit.broken expected.
func brokenSubject(r audit.Row) string {
	hash, _ := r.Fields["expected_hash"].(string)
	found, _ := r.Fields["found"].(string)
	seq, _ := r.Fields["expected_seq"].(float64)
	if hash != "" {
		hash = " with hash " + hash
	}
	return fmt.Sprintf("expected row %d%s, found %s", int64(seq), hash, found)
}

// recoveredSubject returns what audit recover did.
func recoveredSubject(r audit.Row) string {
	kept, _ := r.Fields["kept"].(string)
	rows, _ := r.Fields["rows"].(float64)
	lost, _ := r.Fields["lost"].(float64)
	return fmt.Sprintf("%d rows, %d lost, the old file is %s", int64(rows), int64(lost), kept)
}

// prunedSubject returns what a row stands for.
func prunedSubject(r audit.Row) string {
	rows, _ := r.Fields["rows"].(float64)
	last, _ := r.Fields["last_seq"].(float64)
	return fmt.Sprintf("%d rows, up to row %d", int64(rows), int64(last))
}
