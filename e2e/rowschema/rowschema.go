// Package rowschema holds rows of an audit log to docs/audit.schema.json in tests: [Check] a row, [Log] a whole log.
package rowschema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ALRubinger/aileron/audit"
)

// file is the path of the schema in the repository.
const file = "docs/audit.schema.json"

var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	raw, err := find()
	if err != nil {
		return nil, err
	}
	return Compile(raw)
})

// find reads the schema: tests run in the directory of their package.
func find() ([]byte, error) {
	dir, err := os.Getwd()
	for err == nil {
		raw, readErr := os.ReadFile(filepath.Join(dir, file))
		if readErr == nil {
			return raw, nil
		}
		if filepath.Dir(dir) == dir || !errors.Is(readErr, fs.ErrNotExist) {
			return nil, readErr
		}
		dir = filepath.Dir(dir)
	}
	return nil, err
}

// Compile returns the schema of a document. Formats are required, not only noted.
func Compile(document []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema.json")
}

// Validate returns why a row, as JSON, does not fit the schema.
func Validate(row []byte) error {
	schema, err := compiled()
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(row))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// Check reports a row, as JSON, that does not fit the schema.
func Check(t testing.TB, row []byte) {
	t.Helper()
	if err := Validate(row); err != nil {
		t.Errorf("%v\nthe row: %s", err, row)
	}
}

// Log reports the rows of a log that do not fit the schema.
func Log(t testing.TB, l *audit.Log) {
	t.Helper()
	if err := Walk(l); err != nil {
		t.Error(err)
	}
}

// Walk returns which rows of a log do not fit the schema.
func Walk(l *audit.Log) error {
	var wrong []error
	err := l.Each(context.Background(), audit.Filter{}, func(r audit.Row) error {
		raw, err := json.Marshal(r)
		if err == nil {
			err = Validate(raw)
		}
		if err != nil {
			wrong = append(wrong, err, errors.New("the row: "+string(raw)))
		}
		return nil
	})
	return errors.Join(append(wrong, err)...)
}
