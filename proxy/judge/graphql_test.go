package judge_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/proxy/judge"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/content"
)

func graphQL(name, kind string, fields ...string) *spec.Operation {
	return &spec.Operation{Tool: "t", Name: name, Method: "POST", GraphQL: &content.GraphQL{Type: kind, Fields: fields}}
}

// asking returns an operation that needs an approval.
func asking(name, kind string, fields ...string) *spec.Operation {
	op := graphQL(name, kind, fields...)
	op.Approval = "required"
	return op
}

// forge are the operations of one endpoint.
var forge = []*spec.Operation{
	asking("merge", "mutation", "merge*", "enableAutoMerge"),
	asking("close", "mutation", "closeIssue"),
	graphQL("write", "mutation", "create*", "addComment", "closeIssue"),
	graphQL("read", "query", "*", "__type"),
	{Tool: "t", Name: "stored", Method: "POST", GraphQL: &content.GraphQL{Type: "query", Hashes: []string{storedHash}}},
}

const storedHash = "ecf4edb46db40b5132295c0291d62fb65d6759a9eedfa4d5d612dd5ec54a6b38"

// query returns the body of a request with a document, and further keys.
func query(document string, more ...string) string {
	text, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	return `{"query":` + string(text) + strings.Join(append([]string{""}, more...), ",") + `}`
}

// named returns the key that picks an operation.
func named(operation string) string { return `"operationName":"` + operation + `"` }

func TestRequestsOfGraphQLAreOfTheOperationThatAllowsTheirRoots(t *testing.T) {
	const several = "query A { viewer { login } } mutation B { mergeBranch { id } }"
	for _, c := range [][2]string{ // the operation, or what is denied; the type and the fields
		{query("{ viewer { login } }"), "read: query viewer"},
		{query("query Q($n:Int=3){repository(n:$n){id} viewer{login}}"), "read: query repository,viewer"},
		{query("# mutation { mergeBranch }\n{viewer{id}}"), "read: query viewer"},
		{query("# query { viewer }\r\n mutation { mergeBranch { id } }"), "merge: mutation mergeBranch"},
		{query("mutation { mergeBranch { id } } # query { viewer }"), "merge: mutation mergeBranch"},
		{query("mutation{createIssue(input:{body:\"} query { viewer }\"}){id}}"), "write: mutation createIssue"},
		{query(`mutation{createIssue(b:"\"){id}} query A{viewer{id}}#"){id}}`), "write: mutation createIssue"},
		{query("mutation{createIssue(b:\"\"\"}\nquery A { viewer }\"\"\"){id}}"), "write: mutation createIssue"},
		{query("mutation{addComment(b:\"é \u2028\"){id}}"), "write: mutation addComment"},
		// An alias is no name of the field.
		{query("mutation { createIssue: deleteRepository { id } }"),
			"no mutation:deleteRepository: mutation deleteRepository"},
		{query("mutation { deleteIssue: createIssue { id } }"), "write: mutation createIssue"},
		{query("query { mergeBranch { id } }"), "read: query mergeBranch"},
		{query("mutation { viewer { id } }"), "no mutation:viewer: mutation viewer"},
		{query("mutation { createissue { id } CreateIssue { id } }"),
			"no mutation:CreateIssue: mutation createissue,CreateIssue"},
		{query("subscription { issueChanged { id } }"), "no subscription:issueChanged: subscription issueChanged"},
		// Fragments, with or without a type, and in fragments.
		{query("mutation { ...F } fragment F on Mutation { deleteRepository { id } }"),
			"no mutation:deleteRepository: " + "mutation deleteRepository"},
		{query("fragment G on X{mergeBranch{id}} mutation{addComment{id} ...on Mutation{...F}} fragment F on M{...G}"),
			"merge: " + "mutation addComment,mergeBranch"},
		{query("mutation { ... @include(if: false) { mergeBranch { id } } }"), "merge: mutation mergeBranch"},
		{query("mutation { addComment{id} mergeBranch @skip(if: true) { id } }"),
			"merge: mutation addComment,mergeBranch"},
		{query("mutation($x:Boolean!){...F @include(if:$x)} fragment F on Mutation{closeIssue{id}}"),
			"close: mutation closeIssue"},
		{query("query{viewer{...F ...F}} fragment F on User{mergeBranch}"), "read: query viewer"},
		// The operation that is picked.
		{query(several, named("A")), "read: query viewer"},
		{query(several, named("B")), "merge: mutation mergeBranch"},
		{query(several, `"operation\u004eame":"B"`), "merge: mutation mergeBranch"},
		{query("{viewer{id}}", `"operationName":null,"variables":null,"extensions":null`), "read: query viewer"},
		{`{"qu\u0065ry":"mut\u0061tion{mergeBr\u0061nch{id}}"}`, "merge: mutation mergeBranch"},
		// Two that need an approval are two questions.
		{query("mutation { closeIssue { id } mergeBranch { id } }"),
			"no mutation:mergeBranch: mutation closeIssue,mergeBranch"},
		{query("mutation { mergeA { id } mergeB { id } addComment { id } }"),
			"merge: mutation mergeA,mergeB,addComment"},
		// Introspection is named one by one, except for the name of a type.
		{query("{ __typename a: __type(name: \"X\") { name } }"), "read: query __typename,__type"},
		{query("{ __schema { types { name } } }"), "no query:__schema: query __schema"},
		{query("mutation { __typename }"), "merge: mutation __typename"},
		{query("{ viewer { __schema } }"), "read: query viewer"},
		// Of a batch, every request.
		{"[" + query("{viewer{id}}") + " , " + query("{ a }") + "]", "read: query viewer,a"},
		{"[" + query("{viewer{id}}") + "," + query("mutation{mergeA{id}}") + "]",
			"merge: mutation,query viewer,mergeA"},
		{"[" + query("{viewer{id}}") + "," + query("mutation{deleteX{id}}") + "]",
			"no mutation:deleteX: mutation,query viewer,deleteX"},
		{"[" + query("{a}") + "]", "read: query a"},
		// Documents that the server has.
		{persisted(storedHash), "stored: hash " + storedHash},
		{"[" + persisted(storedHash) + "," + query("mutation{mergeA}") + "]",
			"merge: mutation mergeA hash " + storedHash},
		{persisted(hashOf("{a}")), "no hash:" + hashOf("{a}") + ": hash " + hashOf("{a}")},
		{query("{a}", extensions(hashOf("{a}"))), "read: query a"},
	} {
		body, want := c[0], c[1]
		agreesWithParser(t, body)
		content, err := judge.Read(forge[0], jsonType(), "", []byte(body))
		if err != nil {
			t.Errorf("%s: %v, want %s", body, err, want)
			continue
		}
		got := ""
		var no *judge.NotAllowed
		if op, err := judge.Choose(content, forge); errors.As(err, &no) {
			got = "no " + no.Part.Requested()
		} else {
			got = op.Name
		}
		if got += ": " + row(content.Fields()); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
		if allows(content, searches) {
			t.Errorf("%s: an operation of MCP allows it", body)
		}
	}
}

// row returns the fields of an audit row as text.
func row(fields map[string]any) string {
	var words []string
	if kind, ok := fields["graphql_type"].(string); ok {
		words = append(words, kind)
	}
	if names, ok := fields["graphql_fields"].([]string); ok {
		words = append(words, strings.Join(names, ","))
	}
	if hash, ok := fields["graphql_hash"].(string); ok {
		words = append(words, "hash "+hash)
	}
	return strings.Join(words, " ")
}

func hashOf(document string) string {
	sum := sha256.Sum256([]byte(document))
	return hex.EncodeToString(sum[:])
}

// extensions returns the key that names a stored document.
func extensions(hash string) string {
	return `"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + hash + `"}}`
}

func persisted(hash string) string { return "{" + extensions(hash) + "}" }

func TestWhatServersOfGraphQLMayReadDifferentlyIsUndecidable(t *testing.T) {
	good := query("{viewer{id}}")
	chain := func(n int) string { // of fragments that each spread the next
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "fragment F%d on X{...F%d}", i, i+1)
		}
		return fmt.Sprintf("{...F0}%s fragment F%d on X{a}", &b, n)
	}
	nested := func(n int) string { return strings.Repeat("{a", n) + strings.Repeat("}", n) }
	for _, c := range [][2]string{
		{"", "one value of JSON"},
		{"null", "the request is not an object"},
		{"[]", "an empty batch"},
		{"[" + good + ",[" + good + "]]", "the request is not an object"},
		{"[" + strings.Repeat(good+",", 64) + good + "]", "more than 64 requests"},
		{"\ufeff" + good, "one value of JSON"},
		{"/* */" + good, "one value of JSON"},
		{good + good, "one value of JSON"},
		{`{"query":"{viewer{id}}","query":"mutation{x}"}`, `the key "query" twice`},
		{`{"query":"{viewer{id}}","qu\u0065ry":"mutation{x}"}`, `the key "query" twice`},
		{`{"query":"{viewer{id}}","Query":"mutation{x}"}`, `"query" in another case`},
		{query("{a}", `"__proto__":{"query":"mutation{x}"}`), `the key "__proto__"`},
		{query("{a}", `"id":"abc"`), "other keys than query"},
		{query("{a}", `"documentId":"abc"`), "other keys than query"},
		{query("{a}", `"variables":"{}"`), "variables is not an object"},
		{query("{a}", `"variables":[{}]`), "variables is not an object"},
		{query("{a}", `"operationName":["A"]`), "operationName is no name"},
		{query("{a}", `"operationName":""`), "operationName is no name"},
		{`{"query":["{a}"]}`, "query is no document"},
		{`{"query":""}`, "query is no document"},
		{`{"query":"{a\u0000}"}`, "query is no document"},
		{`{"query":"{a(b:\"\ud800\")}"}`, "query is no document"},
		{`{}`, "the request has no document"},
		{`{"query":null}`, "the request has no document"},
		{`{"variables":{}}`, "the request has no document"},
		// Stored documents.
		{query("{a}", extensions(hashOf("{b}"))), "of another document"},
		{query("{a}", extensions("x")), "64 hexadecimal"},
		{query("{a}", `"extensions":{"persistedQuery":{"id":"x","sha256Hash":"`+hashOf("{a}")+`"}}`),
			"64 hexadecimal"},
		{query("{a}", `"extensions":{"persistedQuery":{"version":1}}`), "64 hexadecimal"},
		{query("{a}", `"extensions":{"persistedQuery":"x"}`), "not an object"},
		{query("{a}", `"extensions":{"documentId":"x"}`), "extensions have other"},
		{`{"extensions":{"persistedQuery":{"sha256Hash":"` + strings.ToUpper(storedHash) + `"}}}`, "64 hexadecimal"},
		{`{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"` + storedHash + `","sha256hash":"x"}}}`,
			"another case"},
		// Which operation is executed.
		{query("query A{a} mutation B{b}"), "operationName picks none"},
		{query("query A{a} mutation B{b}", named("C")), "operationName is none"},
		{query("query A{a}", named("B")), "operationName is none"},
		{query("{a}", named("B")), "operationName is none"},
		{query("{a} mutation B{b}", named("B")), "one of them without a name"},
		{query("query A{a} mutation A{b}", named("A")), "two operations of a name"},
		{query("{a} {b}"), "without a name"},
		{query("fragment F on X{a}"), "no operation"},
		{query("# {a}"), "no operation"},
		// Fragments.
		{query("{...F} fragment F on X{a} fragment F on X{b}"), "two fragments of a name"},
		{query("{...F}"), "no fragment of a name"},
		{query("{a{...F}}"), "no fragment of a name"},
		{query("{...F} fragment F on X{...F}"), "spreads itself"},
		{query("{...F} fragment F on X{a{...G}} fragment G on X{...F}"), "spreads itself"},
		{query(chain(70)), "deeper than 64"},
		{query(chain(40)), ""},
		// A fragment that has been measured is as deep elsewhere.
		{query("{...D a{...U}} fragment D on X" + nested(40) + "fragment U on X" + strings.Repeat("{a", 30) +
			"{...D}" + strings.Repeat("}", 30)),
			"deeper than 64"},
		{query(nested(65)), "nested deeper than 64"},
		{query("{a(b:" + strings.Repeat("[", 70) + strings.Repeat("]", 70) + ")}"), "nested deeper than 64"},
		{query("query($a:" + strings.Repeat("[", 100000)), "nested deeper than 64"},
		{query(strings.Repeat("{a", 80000)), "nested deeper than 64"},
		{query("{" + strings.Repeat("a ", 20000) + "}"), "more than 10000 tokens"},
		{query(strings.Repeat("#\n", 20000) + "{a}"), "more than 10000 tokens"},
		{"[" + query("{"+strings.Repeat("a ", 6000)+"}") + "," + query("{"+strings.Repeat("a ", 6000)+"}") + "]",
			"10000 tokens"},
		{query("{" + manyFields(300) + "}"), "more than 256 fields"},
		{query("{" + strings.Repeat("a", 200) + "}"), "too long a name"},
		// Characters.
		{query("\ufeff{a}"), "a character that none has"},
		{query("{a\u00a0}"), "a character that none has"},
		{query("{\u0430}"), "a character that none has"},
		{query("{a\x0bb}"), "a character that none has"},
		{query("{a} & {b}"), "none of GraphQL"},
		{query("# x\rmutation{b}\n{a}"), "a comment of its document has a control"},
		{query("# x\u2028mutation{b}\n{a}"), "a comment of its document has a control"},
		{query("# x\u0085mutation{b}\n{a}"), "a comment of its document has a control"},
		{query("{a}\rmutation{b}"), "a carriage return"},
		{query("{a} # x\r"), "a comment of its document has a control"},
		{query("{a(b:\"x\ny\")}"), "a string of its document has no end"},
		{query("{a(b:\"x)}"), "a string of its document has no end"},
		{query(`{a(b:"x\`), "a string of its document has no end"},
		{query("{a(b:\"\"\" \" } mutation { b } \" \"\"\")}"), "a block string of its document has a quotation mark"},
		{query(`{a(b:"""x\""" ) } """)}`), "a block string of its document has a quotation mark"},
		{query(`{ a(x:["""\""" "a""""]) } #""" ]) evil }`), "a block string of its document has a quotation mark"},
		{query(`query A($v:[String]=["""\""" "a""""]){a(x:$v)} query B{viewer} #"""]){a(x:$v)} mutation B{mergeBranch}`),
			"a block string of its document has a quotation mark"},
		{query(`{a(b:"""x"""")}`), "a block string of its document has a quotation mark"},
		{query(`{a(b:"""x`), "a block string of its document has a quotation mark"},
		{query(`{a(b:"\q")}`), "none of GraphQL"},
		// Documents that are none.
		{query("{a"), "none of GraphQL"},
		{query("{}"), "none of GraphQL"},
		{query("query"), "none of GraphQL"},
		{query("{a}}"), "none of GraphQL"},
		{query("Mutation{a}"), "none of GraphQL"},
		{query("{a{}}"), "none of GraphQL"},
		{query("type X{a:Int}"), "none of GraphQL"},
		{query("{a} extend type X{b:Int}"), "none of GraphQL"},
		{query("{a:}"), "none of GraphQL"},
		{query("{...on X}"), "none of GraphQL"},
		{query("{..F}"), "none of GraphQL"},
	} {
		body, want := c[0], c[1]
		agreesWithParser(t, body)
		content, err := judge.Read(forge[0], jsonType(), "", []byte(body))
		var undecidable *judge.Undecidable
		if want == "" && err == nil {
			continue
		}
		if !errors.As(err, &undecidable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.200q: %v, %v, want %q", body, content, err, want)
		}
	}
}

// manyFields are so many fields of different names.
func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d ", i)
	}
	return b.String()
}

func TestARequestOfGraphQLIsJSON(t *testing.T) {
	for _, kind := range []string{"application/graphql", "multipart/form-data; boundary=x", "text/plain",
		"application/x-www-form-urlencoded", ""} {
		_, err := judge.Read(forge[0], http.Header{"Content-Type": {kind}}, "", []byte(query("{a}")))
		if err == nil || !strings.Contains(err.Error(), "Content-Type is not application/json") {
			t.Errorf("%q: %v", kind, err)
		}
	}
}

func TestAGETIsJudgedByItsQuery(t *testing.T) {
	get := graphQL("get", "query", "viewer", "repository")
	get.Method = http.MethodGet
	escape := url.QueryEscape
	for _, c := range [][2]string{ // the fields, or the error
		{"query=" + escape("{viewer{id}}"), "query viewer"},
		{"x=1&query=" + escape("query A{viewer} query B{repository}") + "&operationName=B", "query repository"},
		{"%71uery=%7Bviewer%7D&variables=" + escape(`{"a":1}`), "query viewer"},
		{"extensions=" + escape(`{"persistedQuery":{"sha256Hash":"`+storedHash+`"}}`), "hash " + storedHash},
		{"query=" + escape("mutation{viewer}"), "it is a GET"},
		{"query=" + escape("subscription{viewer}"), "it is a GET"},
		{"query=%7Bviewer%7D&query=" + escape("mutation{x}"), `the key "query" twice`},
		{"query=%7Bviewer%7D&Query=1", `"query" in another case`},
		{"query=%7Bviewer%7D&%51uery=1", `"query" in another case`},
		{"query=%7Bviewer%7D&variables=x", "variables of its query is not JSON"},
		{"query=%7Bviewer%7D&variables=1", "variables is not an object"},
		{"query=%7Bviewer%7D&operationName=", "operationName is no name"},
		{"query=%zz", "a broken escape"},
		{"query=%7Bviewer%ff%7D", "query is no document"},
		{"", "no document"},
		{"query=", "query is no document"},
	} {
		q, want := c[0], c[1]
		content, err := judge.Read(get, http.Header{}, q, nil)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = row(content.Fields())
		}
		if err == nil && got != want || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
	for name, header := range map[string]http.Header{"another path": {"X-Original-Url": {"/x"}},
		"another method": {"X-Http-Method-Override": {"POST"}}} {
		if _, err := judge.Read(get, header, "query=%7Bviewer%7D", nil); err == nil {
			t.Errorf("%s: it is decided", name)
		}
	}
}

func TestTheFieldsOfARowAreBounded(t *testing.T) {
	content := must.Get(judge.Read(forge[0], jsonType(), "", []byte(query("{"+manyFields(40)+"}"))))(t)
	fields := content.Fields()
	names, ok := fields["graphql_fields"].([]string)
	if !ok || len(names) != 16 || fields["graphql_fields_omitted"] != 24 {
		t.Errorf("the row has %v", fields)
	}
	if text := content.String(); !strings.HasSuffix(text, `"a7" of GraphQL, 32 more`) {
		t.Errorf("people are shown %q", text)
	}
}

func TestOperationsWithDifferentCredentialsAreSeparateRequests(t *testing.T) {
	a, b := graphQL("a", "query", "a"), graphQL("b", "query", "b")
	a.Injection = &spec.Injection{Kind: "bearer", In: "header", Name: "Authorization"}
	content := must.Get(judge.Read(a, jsonType(), "", []byte(query("{a b}"))))(t)
	for in, want := range map[*spec.Injection]string{nil: "another credential",
		{Kind: "bearer", In: "header", Name: "X-Token"}:       "another credential",
		{Kind: "bearer", In: "header", Name: "Authorization"}: ""} {
		b.Injection = in
		op, err := judge.Choose(content, []*spec.Operation{a, b})
		if want == "" && (err != nil || op != a) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: %v, %v, want %q", in, op, err, want)
		}
	}
}

// FuzzGraphQL holds what is decided to properties of the text: its roots are names in it, however the text is written.
func FuzzGraphQL(f *testing.F) {
	f.Add("query A { a: b(x: \"}\") @skip(if: true) { c } ...F } fragment F on Q { d } mutation B { e }", "A")
	f.Add("# x\n{ a(b: [1, {c: \"\"\"d\"\"\"}]) { e } }", "")
	f.Fuzz(func(t *testing.T, document, name string) {
		more := []string{}
		if name != "" {
			text, _ := json.Marshal(name)
			more = append(more, `"operationName":`+string(text))
		}
		content, err := judge.Read(forge[0], jsonType(), "", []byte(query(document, more...)))
		if err != nil {
			return
		}
		for _, part := range content.Parts() {
			kind, field, _ := strings.Cut(part.Requested(), ":")
			if !strings.Contains(document, field) || kind != "query" && !strings.Contains(document, kind) {
				t.Errorf("%q asks for %s", document, part.Requested())
			}
		}
		// Nothing is behind the document: with something that is executed there, it is another one.
		if again, err := judge.Read(forge[0], jsonType(), "", []byte(query(document+"\n#", more...))); err != nil ||
			!maps.EqualFunc(again.Fields(), content.Fields(), equal) {
			t.Errorf("%q: with a comment at the end, %v %v", document, again, err)
		}
	})
}

func equal(a, b any) bool {
	x, ok := a.([]string)
	y, _ := b.([]string)
	return ok && slices.Equal(x, y) || !ok && a == b
}

func BenchmarkGraphQL(b *testing.B) {
	document := `query PullRequestList($owner: String!, $repo: String!, $limit: Int!, $endCursor: String) {
  repository(owner: $owner, name: $repo) { pullRequests(states: OPEN, first: $limit, after: $endCursor) {
  totalCount nodes { ...pr author { login ... on User { id, name } } } pageInfo { hasNextPage, endCursor } } } }
fragment pr on PullRequest {` +
		strings.Repeat("\n  number title state url headRefName(first: 3) { id name }", 28) + ` }`
	body := []byte(query(document, `"variables":{"owner":"acme","repo":"tool","limit":30}`))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		content := must.Get(judge.Read(forge[0], jsonType(), "", body))(b)
		must.Get(judge.Choose(content, forge))(b)
	}
}
