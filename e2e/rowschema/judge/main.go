// Judge reports which rows of its input, as JSON, do not fit docs/audit.schema.json. It is a program, because package
// jsonschema compiles its own schemas wherever it is linked: that was a third of each aileron that the stories of
// cmd/aileron start, which are their test's own program.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ALRubinger/aileron/e2e/rowschema"
)

func main() {
	code := 0
	for dec := json.NewDecoder(os.Stdin); ; {
		var row json.RawMessage
		err := dec.Decode(&row)
		if errors.Is(err, io.EOF) {
			os.Exit(code)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := rowschema.Validate(row); err != nil {
			fmt.Fprintf(os.Stderr, "%v\nthe row: %s\n", err, row)
			code = 1
		}
	}
}
