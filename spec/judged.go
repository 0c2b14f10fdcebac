package spec

import "slices"

// JudgesBody reports whether the operation decides by a request's body, too: the proxy reads it before it sends
// anything.
func (o *Operation) JudgesBody() bool { return o.MCP != nil }

// BodyGrants returns what the operation allows a body to ask for, in the words of a denial.
func (o *Operation) BodyGrants() []string {
	if o.MCP == nil {
		return nil
	}
	return o.MCP.Grants()
}

// BodyGrants returns what a body of the request may ask for, in the words of a denial; nil: bodies are not judged.
func (m Match) BodyGrants() []string {
	granted := m.Operation.BodyGrants()
	for _, other := range m.Others {
		granted = append(granted, other.BodyGrants()...)
	}
	return granted
}

// checkJudged checks what an operation that judges bodies, by the key, needs beside it. No server must find in the
// query what the body has to say.
func (op *Operation) checkJudged(n node, key string) {
	if op.Method != "POST" {
		n.diags.add(n.at(key), "it needs the method POST")
	}
	if op.Path.IsZero() {
		n.diags.add(n.at(key), "it needs a path")
	}
	if op.Upgrade != "" {
		n.diags.add(n.at(key), "what is sent after an upgrade is not judged")
	}
	if query, _ := n.o.get("query"); query == "any" {
		n.diags.add(n.at("query"), "it is \"any\", and %s needs \"declared\"", key)
	}
	op.QueryDeclaredOnly = true
}

// checkAllJudge records operations that allow every body of requests whose body another one of them judges: that one
// would decide nothing. Equal templates of one host and method are the same requests; among others, one takes
// precedence.
func (c *Connector) checkAllJudge(top node) {
	type place struct {
		host         HostPattern
		method, path string
	}
	judged := map[place]*Operation{}
	each := func(visit func(ti, oi int, op *Operation, at place)) {
		for ti, t := range c.Tools {
			for oi, op := range t.Operations {
				for _, h := range op.Hosts {
					visit(ti, oi, op, place{h, op.Method, op.Path.shape()})
				}
			}
		}
	}
	each(func(_, _ int, op *Operation, at place) {
		if op.JudgesBody() && judged[at] == nil {
			judged[at] = op
		}
	})
	if len(judged) == 0 {
		return
	}
	var named []*Operation
	each(func(ti, oi int, op *Operation, at place) {
		if by := judged[at]; by != nil && !op.JudgesBody() && !slices.Contains(named, op) {
			named = append(named, op)
			top.diags.add(top.item("tools", ti)+within("operations", oi), "it allows every body of the requests of %s, "+
				"which judges them", by.Name)
		}
	})
}
