package content

import (
	"slices"
	"strings"
)

// GraphQL is which requests of GraphQL an operation allows: those of one type, by the fields at the root of the
// document.
type GraphQL struct {
	Type   string   // one of GraphQLTypes
	Fields []string // each the name of a field, or the beginning of names with "*" at the end
	Hashes []string // SHA-256 of documents that a server has, in hexadecimal digits: requests name them without the text
}

// GraphQLTypes are the types of operations of GraphQL.
var GraphQLTypes = []string{"query", "mutation", "subscription"}

// typeNameField names the type of an object, also that of the root. It returns nothing else, so all may use it.
const typeNameField = "__typename"

// AllowsField reports whether a field may stand at the root of an operation of a type. Names are compared byte by byte.
// A pattern covers none of the names with two underscores: those of introspection have to be listed.
func (g *GraphQL) AllowsField(kind, name string) bool {
	return kind == g.Type && (name == typeNameField || slices.ContainsFunc(g.Fields, func(pattern string) bool {
		prefix, wild := strings.CutSuffix(pattern, "*")
		return name == pattern || wild && strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, "__")
	}))
}

// AllowsHash reports whether a request may name the document that a server has under the hash.
func (g *GraphQL) AllowsHash(hash string) bool { return slices.Contains(g.Hashes, hash) }

// Grants returns what g allows, in the words of a denial.
func (g *GraphQL) Grants() (list []string) {
	for _, field := range g.Fields {
		list = append(list, g.Type+":"+field)
	}
	for _, hash := range g.Hashes {
		list = append(list, "hash:"+hash)
	}
	return list
}

// IsGraphQLName reports whether s can be a name in GraphQL (October 2021, section 2.1.9).
func IsGraphQLName(s string) bool {
	const digits = "0123456789"
	return s != "" && len(s) <= MaxName && !strings.ContainsAny(s[:1], digits) &&
		strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"+digits) == ""
}

// IsFieldPattern reports whether s can be an entry of [GraphQL.Fields].
func IsFieldPattern(s string) bool {
	name, wild := strings.CutSuffix(s, "*")
	return wild && name == "" || IsGraphQLName(name) && !(wild && strings.HasPrefix(name, "__"))
}

// IsGraphQLHash reports whether s can be the hash of a document that a server has.
func IsGraphQLHash(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }
