package judge

import "strings"

// Bounds of a document.
const (
	maxTokens = 10000 // of all documents of a body: one takes some 300 bytes when it is parsed
	maxDepth  = 64    // of brackets, and of selections with the fragments in them
)

// checkSource checks the characters of a document of GraphQL, before it is parsed, and returns the number of its
// tokens, of which it has at most so many. What parsers read differently, as they are of another edition or not
// strict, is undecidable: where a comment ends, what ends a string, and what is a space.
func checkSource(text string, most int) (tokens int, err error) {
	depth := 0
	for at := 0; at < len(text); tokens++ {
		switch c := text[at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == ',':
			at++
			tokens--
		case c == '\r':
			if at+1 == len(text) || text[at+1] != '\n' {
				return 0, undecidable("its document has a carriage return without a line feed")
			}
			at += 2
			tokens--
		case c == '#':
			at, err = skipComment(text, at)
		case c == '"':
			at, err = skipString(text, at)
		case isNameByte(c) || c == '-' || c == '+':
			for at++; at < len(text) && isNameByte(text[at]); {
				at++
			}
		case c == '{' || c == '(' || c == '[':
			if depth++; depth > maxDepth {
				return 0, undecidable("its document is nested deeper than %d", maxDepth)
			}
			at++
		case c == '}' || c == ')' || c == ']':
			depth--
			at++
		case strings.IndexByte("!$&.:=@|", c) >= 0:
			at++
		default:
			return 0, undecidable("its document has a character that none has outside of comments and strings")
		}
		if err != nil {
			return 0, err
		}
		if tokens >= most {
			return 0, undecidable("its documents have more than %d tokens", maxTokens)
		}
	}
	return tokens, nil
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// skipComment returns the end of the comment that begins at a place: that of its line.
func skipComment(text string, at int) (int, error) {
	end := len(text)
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		end = at + n
	}
	comment := strings.TrimSuffix(text[at:end], "\r")
	if end == len(text) {
		comment = text[at:end]
	}
	for _, r := range comment {
		switch {
		case r < ' ' && r != '\t', r == 0x7f, r == '\u0085', r == '\u2028', r == '\u2029', r == '\ufeff':
			return 0, undecidable("a comment of its document has a control character, or one that may end a line")
		}
	}
	return end, nil
}

const blockQuote = `"""`

// endsBlock reports whether a block string ends at a place for all parsers: with three quotation marks and no more.
func endsBlock(rest string) bool {
	more, ok := strings.CutPrefix(rest, blockQuote)
	return ok && !strings.HasPrefix(more, `"`)
}

// skipString returns the end of the string that begins at a place. In a block string \""" is a quotation, behind which
// the string goes on, and parsers end one with four or five quotation marks at different ones: both are undecidable.
func skipString(text string, at int) (int, error) {
	if strings.HasPrefix(text[at:], blockQuote) {
		begin := at + len(blockQuote)
		n := strings.IndexByte(text[begin:], '"')
		if n < 0 || text[begin+n-1] == '\\' || !endsBlock(text[begin+n:]) {
			return 0, undecidable("a block string of its document has a quotation mark, or no end")
		}
		return begin + n + len(blockQuote), nil
	}
	for at++; at < len(text) && text[at] != '"'; at++ {
		if text[at] == '\n' || text[at] == '\r' {
			break
		}
		if text[at] == '\\' {
			at++
		}
	}
	if at >= len(text) || text[at] != '"' {
		return 0, undecidable("a string of its document has no end")
	}
	return at + 1, nil
}
