package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/termsafe"
)

// printRow writes one event: as an object with --json, else as a line for a person.
func (a *app) printRow(r audit.Row) error {
	if a.json {
		return a.printJSON(r)
	}
	decision := cmp.Or(string(r.Decision), "-")
	if r.Event == audit.EventProxyStarted {
		decision = "started"
	} else if r.Decision == "" {
		decision = string(r.Event)
	}
	status := "   "
	if r.Status != 0 {
		status = strconv.Itoa(r.Status)
	}
	line := fmt.Sprintf("%s  %-9s %s  %s", r.TS.Local().Format("15:04:05.000"), decision, status, subject(r))
	if r.Operation != "" {
		line += "  [" + r.Tool + " " + r.Operation + "]"
	}
	if r.Reason != "" {
		line += "  " + r.Reason
	}
	line += counted(r)
	if r.Redactions > 0 {
		line += fmt.Sprintf("  %d redacted", r.Redactions)
	}
	_, err := fmt.Fprintln(a.stdout, strings.TrimRight(termsafe.Line(line), " "))
	return err
}

// subject returns what an event is about: its request, its session, its binding or its connector.
func subject(r audit.Row) string {
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

// counted returns the number of connections or requests that one event stands for, or "".
func counted(r audit.Row) string {
	text := ""
	for _, what := range []string{"connections", "requests"} {
		if n, ok := r.Fields[what].(float64); ok {
			text = fmt.Sprintf("  %d %s", int64(n), what)
		}
	}
	if text == "" {
		return ""
	}
	if ports, _ := r.Fields["ports"].(string); ports != "" {
		text += ", ports " + ports
	}
	if hosts, _ := r.Fields["hosts"].([]any); r.Host == "" && len(hosts) > 0 {
		text += ", hosts " + strings.Trim(fmt.Sprint(hosts), "[]")
	}
	return text
}

// brokenSubject returns which event audit.broken expected.
func brokenSubject(r audit.Row) string {
	hash, _ := r.Fields["expected_hash"].(string)
	found, _ := r.Fields["found"].(string)
	seq, _ := r.Fields["expected_seq"].(float64)
	return fmt.Sprintf("expected row %d with hash %s, found %s", int64(seq), hash, found)
}

// recoveredSubject returns what audit recover did.
func recoveredSubject(r audit.Row) string {
	kept, _ := r.Fields["kept"].(string)
	rows, _ := r.Fields["rows"].(float64)
	lost, _ := r.Fields["lost"].(float64)
	return fmt.Sprintf("%d rows, %d lost, the old file is %s", int64(rows), int64(lost), kept)
}
