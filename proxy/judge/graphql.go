package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/content"
)

// The keys of a request of GraphQL over HTTP, and those of its extensions. Servers take the document from others, too,
// such as id, so a request has none but these.
var (
	requestKeys   = []string{"query", "operationName", "variables", "extensions"}
	extensionKeys = []string{"persistedQuery", "clientLibrary"}
	persistedKeys = []string{"version", "sha256Hash"}
)

// maxBatch bounds the requests of a batch.
const maxBatch = 64

// requests are those of GraphQL in a body, by the fields at their roots and the hashes of documents that it has not.
type requests struct{ parts []Part }

// storedDocument is the document that a server has under a hash.
type storedDocument string

// AllowedBy implements [Part].
func (h storedDocument) AllowedBy(op *spec.Operation) bool {
	return op.GraphQL != nil && op.GraphQL.AllowsHash(string(h))
}

// Requested implements [Part].
func (h storedDocument) Requested() string { return "hash:" + string(h) }

func (h storedDocument) String() string { return "the stored document " + string(h) + " of GraphQL" }

// readGraphQL reads a request, or a batch of them.
func readGraphQL(body []byte) (Content, error) {
	if err := checkJSON(body); err != nil {
		return nil, err
	}
	var (
		r       requests
		entries = [][]byte{body}
		left    = maxTokens
		err     error
	)
	if at := skipSpace(body, 0); body[at] == '[' {
		if entries, err = readBatch(body[at:]); err != nil {
			return nil, err
		}
	}
	for _, entry := range entries {
		o, err := readObject(entry, "the request", requestKeys...)
		if err != nil {
			return nil, err
		}
		if left, err = r.add(o, left); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// readBatch returns the entries of a list. raw is valid JSON.
func readBatch(raw []byte) (entries [][]byte, err error) {
	for at := skipSpace(raw, 1); raw[at] != ']'; {
		end := skipValue(raw, at)
		if len(entries) == maxBatch {
			return nil, undecidable("it is a batch of more than %d requests", maxBatch)
		}
		entries = append(entries, raw[at:end])
		if at = skipSpace(raw, end); raw[at] == ',' {
			at = skipSpace(raw, at+1)
		}
	}
	if len(entries) == 0 {
		return nil, undecidable("it is an empty batch")
	}
	return entries, nil
}

// readGraphQLQuery reads the request that the query of a URL is. Names that are none of GraphQL the operation declares.
func readGraphQLQuery(query string) (Content, error) {
	var o object
	for pair := range strings.SplitSeq(query, "&") {
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil {
			return nil, undecidable("its query has a broken escape")
		}
		if !slices.ContainsFunc(requestKeys, func(k string) bool { return strings.EqualFold(k, name) }) {
			continue
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			return nil, undecidable("its query has a broken escape")
		}
		raw := []byte(value)
		if name == "query" || name == "operationName" {
			if raw, err = json.Marshal(value); err != nil {
				return nil, undecidable("its query is not UTF-8")
			}
		}
		if err := checkJSON(raw); err != nil {
			return nil, undecidable("%s of its query is not JSON in UTF-8", name)
		}
		if err := o.add(member{name, raw}, "its query", requestKeys); err != nil {
			return nil, err
		}
	}
	var r requests
	if _, err := r.add(o, maxTokens); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(r.parts, func(p Part) bool { f, ok := p.(rootField); return ok && f.kind != "query" }) {
		return nil, undecidable("it is a GET, and its document has another operation than a query")
	}
	return r, nil
}

// add adds what a request asks for. Its document has at most so many tokens, and those that are left are returned.
func (r *requests) add(o object, tokens int) (left int, err error) {
	for _, m := range o {
		if !slices.Contains(requestKeys, m.key) {
			return 0, undecidable("the request has other keys than %s", strings.Join(requestKeys, ", "))
		}
	}
	name, hasName, ok := optionalText(o.get("operationName"))
	if !ok || hasName && !content.IsGraphQLName(name) {
		return 0, undecidable("operationName is no name of GraphQL")
	}
	text, hasText, ok := optionalText(o.get("query"))
	if !ok || hasText && text == "" {
		return 0, undecidable("query is no document")
	}
	if variables := o.get("variables"); !isNull(variables) && variables[skipSpace(variables, 0)] != '{' {
		return 0, undecidable("variables is not an object")
	}
	hash, err := persistedHash(o.get("extensions"))
	switch {
	case err != nil:
		return 0, err
	case !hasText && hash == "":
		return 0, undecidable("the request has no document")
	case !hasText:
		if !slices.Contains(r.parts, Part(storedDocument(hash))) {
			r.parts = append(r.parts, storedDocument(hash))
		}
		return tokens, nil
	}
	if hash != "" {
		if sum := sha256.Sum256([]byte(text)); hash != hex.EncodeToString(sum[:]) {
			return 0, undecidable("the hash in its extensions is that of another document")
		}
	}
	parts, n, err := readDocument(text, name, tokens, r.parts)
	if err != nil {
		return 0, err
	}
	r.parts = parts
	return tokens - n, nil
}

// persistedHash returns the hash of a document that extensions name, or "" if they name none.
func persistedHash(extensions []byte) (string, error) {
	if isNull(extensions) {
		return "", nil
	}
	o, err := readObject(extensions, "extensions", extensionKeys...)
	if err != nil {
		return "", err
	}
	for _, m := range o {
		if !slices.Contains(extensionKeys, m.key) {
			return "", undecidable("extensions have other keys than %s", strings.Join(extensionKeys, ", "))
		}
	}
	raw := o.get("persistedQuery")
	if isNull(raw) {
		return "", nil
	}
	if o, err = readObject(raw, "persistedQuery", persistedKeys...); err != nil {
		return "", err
	}
	hash, ok := text(o.get("sha256Hash"))
	if !ok || !content.IsGraphQLHash(hash) || len(o) > len(persistedKeys) || len(o) == 2 && o.get("version") == nil {
		return "", undecidable("persistedQuery is not a version and a sha256Hash of 64 hexadecimal digits in lower case")
	}
	return hash, nil
}

// isNull reports whether a value is not there, or null.
func isNull(raw []byte) bool { return raw == nil || string(raw) == "null" }

// optionalText returns the string that raw is. It may be null or not there; ok is false for others.
func optionalText(raw []byte) (s string, has, ok bool) {
	if isNull(raw) {
		return "", false, true
	}
	s, ok = text(raw)
	return s, true, ok
}

// Parts implements [Content].
func (r requests) Parts() []Part { return r.parts }

// maxRecorded bounds the names of root fields in an audit row.
const maxRecorded = 16

// Fields implements [Content].
func (r requests) Fields() map[string]any {
	fields := map[string]any{}
	kinds, names := rootsIn(r.parts)
	if kinds != "" {
		fields["graphql_type"], fields["graphql_fields"] = kinds, names[:min(len(names), maxRecorded)]
	}
	if omitted := len(names) - maxRecorded; omitted > 0 {
		fields["graphql_fields_omitted"] = omitted
	}
	for _, p := range r.parts {
		if hash, ok := p.(storedDocument); ok {
			fields["graphql_hash"] = string(hash) // the first
			break
		}
	}
	return fields
}

// maxShown bounds the parts that a person is shown.
const maxShown = 8

// String implements [Content].
func (r requests) String() string {
	var list []string
	for _, p := range r.parts[:min(len(r.parts), maxShown)] {
		list = append(list, p.String())
	}
	if more := len(r.parts) - maxShown; more > 0 {
		list = append(list, strconv.Itoa(more)+" more")
	}
	return strings.Join(list, ", ")
}

// Repeated implements [Content]: clients send the same bytes.
func (r requests) Repeated(body []byte) []byte { return body }
