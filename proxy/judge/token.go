package judge

// The kinds of tokens that a scanner returns beside punctuators, which are their own byte. A spread is '.'.
const (
	endToken    byte = 0
	oddToken    byte = 1 // it is for the parser to decide
	nameToken   byte = 'n'
	numberToken byte = '0'
	stringToken byte = '"'
)

// scanner reads the tokens of a document of GraphQL. It is at least as strict as checkSource and the parser's lexer:
// what they refuse, and what is rare, is an oddToken, at which it stays.
type scanner struct {
	text   string
	kind   byte // of the token
	begin  int  // of the token
	at     int  // behind the token
	tokens int  // as checkSource counts them, up to the token
	most   int  // of them; one more is odd
	depth  int  // of brackets
}

// value returns the text of the token.
func (s *scanner) value() string { return s.text[s.begin:s.at] }

// is reports whether the token is a name, and this one.
func (s *scanner) is(name string) bool { return s.kind == nameToken && s.value() == name }

// next reads the next token.
func (s *scanner) next() {
	if s.kind == oddToken {
		return
	}
	s.kind = oddToken
	if !s.skipIgnored() || s.tokens > s.most {
		return
	}
	s.begin = s.at
	if s.at == len(s.text) {
		s.kind = endToken
		return
	}
	s.tokens++
	switch c := s.text[s.at]; {
	case isNameByte(c) && (c < '0' || c > '9'):
		for s.at++; s.at < len(s.text) && isNameByte(s.text[s.at]); {
			s.at++
		}
		s.kind = nameToken
	case c == '{' || c == '(' || c == '[':
		if s.depth++; s.depth <= maxDepth {
			s.at++
			s.kind = c
		}
	case c == '}' || c == ')' || c == ']':
		s.depth--
		fallthrough
	case c == ':' || c == '$' || c == '@' || c == '!' || c == '=':
		s.at++
		s.kind = c
	case c == '.':
		if len(s.text)-s.at >= 3 && s.text[s.at:s.at+3] == "..." {
			s.at += 3
			s.tokens += 2
			s.kind = c
		}
	case c == '"':
		s.skipString()
	default:
		s.skipNumber()
	}
}

// skipIgnored skips spaces, commas and comments. It reports false for what may be neither.
func (s *scanner) skipIgnored() bool {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', ',':
			s.at++
		case '\r':
			if s.at+1 == len(s.text) || s.text[s.at+1] != '\n' {
				return false
			}
			s.at += 2
		case '#':
			end, err := skipComment(s.text, s.at)
			if err != nil {
				return false
			}
			s.at = end
			s.tokens++
		default:
			return true
		}
	}
	return true
}

// skipNumber reads an integer. Others are odd.
func (s *scanner) skipNumber() {
	at := s.at
	if s.text[at] == '-' {
		at++
	}
	digits := at
	for at < len(s.text) && s.text[at] >= '0' && s.text[at] <= '9' {
		at++
	}
	switch {
	case at == digits, s.text[digits] == '0' && at > digits+1:
	case at < len(s.text) && (isNameByte(s.text[at]) || s.text[at] == '.'):
	default:
		s.at, s.kind = at, numberToken
	}
}

// skipString reads a string. One with an escape in hexadecimal digits, or with control characters, is odd.
func (s *scanner) skipString() {
	end, err := skipString(s.text, s.at)
	if err != nil {
		return
	}
	block := end-s.at >= 2*len(blockQuote) && s.text[s.at:s.at+len(blockQuote)] == blockQuote
	for at := s.at; at < end; at++ {
		switch c := s.text[at]; {
		case c == '\\' && !block:
			at++
			switch s.text[at] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			default:
				return
			}
		case c < ' ' && c != '\t' && !(block && c == '\n'):
			return
		}
	}
	s.at, s.kind = end, stringToken
}
