// Command promparse reads a page of metrics from standard input with the parser of Prometheus, and prints each sample
// on a line. Its argument is the Content-Type of the page. It is a module of its own, because Prometheus brings many
// others.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

func main() {
	if err := parse(os.Stdin, os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "promparse:", err)
		os.Exit(1)
	}
}

func parse(in io.Reader, out io.Writer, contentType string) error {
	page, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	p, err := textparse.New(page, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	if err != nil {
		return err
	}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var l labels.Labels
		p.Labels(&l)
		_, _, value := p.Series()
		fmt.Fprintln(out, l, value)
	}
}
