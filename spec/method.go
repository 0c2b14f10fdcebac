package spec

import (
	"slices"
	"strings"
)

// methods are the names of the IANA HTTP Method Registry, without three:
// CONNECT opens a tunnel, TRACE returns the request with its credential in
// the response body (RFC 9110 section 9.3.8), and PRI is part of the HTTP/2
// preface. The server alone decides what a name that is not registered means,
// so no operation can declare what it would do.
var methods = strings.Fields(`
	ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT COPY DELETE GET HEAD LABEL LINK LOCK MERGE MKACTIVITY MKCALENDAR
	MKCOL MKREDIRECTREF MKWORKSPACE MOVE OPTIONS ORDERPATCH PATCH POST PROPFIND PROPPATCH PUT QUERY REBIND REPORT
	SEARCH UNBIND UNCHECKOUT UNLINK UNLOCK UPDATE UPDATEREDIRECTREF VERSION-CONTROL`)

// isMethod reports whether an operation may have the method. Methods are
// case-sensitive.
func isMethod(s string) bool { return slices.Contains(methods, s) }

// acceptsMethod reports whether the operation accepts the method. "*" stands for the
// registered ones; only an operation that allows its hosts as they are
// accepts every name.
func (op *Operation) acceptsMethod(method string) bool {
	if op.Method == "" || op.Method == "*" {
		return isMethod(method) || op.Method == "" && op.AnyPath()
	}
	return op.Method == method
}

func (op *Operation) readMethod(n node) {
	if _, has := n.o.get("method"); !has {
		return
	}
	op.Method = n.text("method", true)
	if op.Method != "" && op.Method != "*" && !isMethod(op.Method) {
		n.diags.add(n.at("method"), "%q %s", op.Method, badMethod(op.Method))
	}
}

// badMethod returns why an operation cannot have the method.
func badMethod(s string) string {
	switch upper := strings.ToUpper(s); {
	case upper == "CONNECT" || upper == "TRACE" || upper == "TRACK" || upper == "PRI":
		return "is never forwarded"
	case isMethod(upper):
		return "is not a method, for methods are case-sensitive: use " + quote(upper)
	}
	return "is not in the IANA HTTP Method Registry"
}
