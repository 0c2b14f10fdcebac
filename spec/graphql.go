package spec

import "github.com/ALRubinger/aileron/spec/content"

// readGraphQL reads graphql. The method, the path, the inputs and the query must have been read.
func (op *Operation) readGraphQL(n node) {
	v, has := n.o.Get("graphql")
	if !has {
		return
	}
	g, ok := n.diags.open(v, n.at("graphql"), "type", "fields", "hashes")
	if !ok {
		return
	}
	op.GraphQL = &content.GraphQL{
		Type: g.choice("type", content.GraphQLTypes...),
		Fields: g.distinct("fields", content.IsFieldPattern,
			"is neither the name of a field nor the beginning of names, such as \"create*\""),
		Hashes: g.distinct("hashes", content.IsGraphQLHash, "is not 64 hexadecimal digits in lower case"),
	}
	if _, has := g.o.Get("type"); !has {
		n.diags.add(g.at("type"), "missing")
	}
	if len(op.GraphQL.Fields)+len(op.GraphQL.Hashes) == 0 {
		n.diags.add(n.at("graphql"), "it allows nothing: name fields or hashes")
	}
	if op.MCP != nil {
		n.diags.add(n.at("graphql"), "an operation with mcp has messages of MCP")
	}
	op.checkJudged(n, "graphql", "POST", "GET")
	if op.Method == "GET" && op.GraphQL.Type != "query" {
		n.diags.add(n.at("graphql"), "a GET changes nothing: its type is query")
	}
	for _, c := range op.When {
		if c.In != InPath { // operationName is a name of the client's, and the document has others for all values
			n.diags.add(n.at("approval"), "a client of GraphQL writes %s.%s as it likes: let an operation of its own ask, with "+
				"the fields that need it", c.In, c.Name)
		}
	}
	for i, in := range op.Inputs {
		if in.In == InQuery && op.Method != "GET" {
			n.diags.add(n.item("inputs", i), "it is in the query, in which a server may look for the document")
		}
	}
}
