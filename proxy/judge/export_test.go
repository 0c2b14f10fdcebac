package judge

import "fmt"

// BothWays reads a document without a parser and with it, and returns an error if both decide, and not the same.
// quick reports whether no parser was needed.
func BothWays(text, name string, most int) (quick bool, err error) {
	read, tokens, quick := readQuickly(text, name, most, nil)
	if !quick {
		return false, nil
	}
	parsed, counted, err := parseDocument(text, name, most, nil)
	if err != nil || fmt.Sprint(read) != fmt.Sprint(parsed) || tokens != counted {
		return true, fmt.Errorf("without a parser it is %v, of %d tokens; with it %v, of %d: %w", read, tokens, parsed,
			counted, err)
	}
	return true, nil
}

// ReadQuickly returns how many bytes of a document are read without a parser until it is decided that it needs one.
func ReadQuickly(text string, most int) (read int) {
	q := quick{scanner: scanner{text: text, most: most}}
	q.next()
	for q.kind != endToken && q.definition() {
	}
	return q.at
}
