// Package connectorschema has the JSON Schemas (draft 7, which editors read) of
// a connector's two files. docs/schema repeats them.
//
// [Document] returns one. A schema finds what is wrong with the structure of a
// file: an unknown key, a missing one, a type, a word, a name. Only package spec
// finds faults that depend on another value, such as an input that names no
// variable of the path, and on its lists of reserved commands, fields and hosts.
// A test compares the two.
package connectorschema

import (
	"embed"
	"fmt"
)

// The names of the documents.
const (
	Connector = "connector" // aileron.connector.v1.json
	Manifest  = "manifest"  // manifest.toml
)

//go:embed *.schema.json
var files embed.FS

// File returns the name of the file in docs/schema that has the document.
func File(name string) (string, error) {
	switch name {
	case Connector:
		return "aileron.connector.v1.schema.json", nil
	case Manifest:
		return "manifest.schema.json", nil
	}
	return "", fmt.Errorf("there is no schema %q", name)
}

// Document returns the schema of that name.
func Document(name string) ([]byte, error) {
	file, err := File(name)
	if err != nil {
		return nil, err
	}
	return files.ReadFile(file)
}
