// Package learn makes templates of the paths of recorded requests, and keeps what a learning session notes beside the
// audit log. It knows no connector and no home: package propose makes a connector of what is here.
//
// A [Tree] takes requests, and returns the [Operation]s that cover them:
//
//	var t learn.Tree
//	t.Add(learn.Request{Host: "api.example", Port: 443, Method: "GET", Path: "/repos/acme/widget/issues/7", Row: id})
//	t.Add(learn.Request{Host: "api.example", Port: 443, Method: "GET", Path: "/repos/acme/widget/issues/8", Row: id})
//	t.Operations()[0].Template() // "/repos/acme/widget/issues/{issue}"
//
// A segment that looks like a value ([KindOf]: a number, an id, a hash, a date, a version, a secret) is a variable at
// once, and its text is not kept. Literals become one where many stand side by side that are alike. A sandbox chooses
// its paths: a tree has bounds, and what it has no room for is counted in [Tree.LeftOut].
//
// [Notes] is the file of a learning session: names of queries and types of bodies, by method and [Shape] of the path.
package learn
