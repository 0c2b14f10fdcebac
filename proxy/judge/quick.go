package judge

// Bounds of a document that is decided without a parser.
const (
	maxQuickFragments = 64
	maxQuickSpreads   = 256
)

// quick recognises documents of the usual form without making a tree of them: one operation that spreads no fragment at
// its root. It decides nothing else, and no document in another way than the parser and [document] do: what it does not
// recognise is left to them, errors included.
type quick struct {
	scanner
	kindOf    string // of the operation
	name      string // of the operation; "": it has none
	roots     document
	fragments []quickPart // by their order
	operation quickPart
	spreads   []quickSpread // of all of them

	level  int  // of the set that is being read, in its definition
	atRoot bool // it is one of the root
	height int  // of the definition
}

// quickPart is a definition: how many sets are in each other there, without those of fragments, and what it spreads.
type quickPart struct {
	name        string
	height      int
	first, last int // of spreads
	total       int // with those of fragments; 0: not measured
}

// quickSpread is a fragment that is spread in a set which is so deep in its definition.
type quickSpread struct {
	name  string
	level int
}

// readQuickly returns what readDocument does. ok is false if that has to decide.
func readQuickly(text, name string, most int, parts []Part) (_ []Part, tokens int, ok bool) {
	q := quick{scanner: scanner{text: text, most: most}, roots: document{roots: parts}}
	q.next()
	for q.kind != endToken {
		if !q.definition() {
			return nil, 0, false
		}
	}
	if q.kindOf == "" || name != "" && name != q.name || q.tokens > most {
		return nil, 0, false
	}
	if height, ok := q.measure(&q.operation); !ok || height > maxDepth-2 {
		return nil, 0, false
	}
	return q.roots.roots, q.tokens, true
}

// expect reads a token of a kind.
func (q *quick) expect(kind byte) bool {
	if q.kind != kind {
		return false
	}
	q.next()
	return true
}

// definition reads an operation or a fragment.
func (q *quick) definition() bool {
	part := quickPart{first: len(q.spreads)}
	isFragment := q.is("fragment")
	q.level, q.height, q.atRoot = 0, 0, !isFragment
	if isFragment && !q.fragmentHead(&part) || !isFragment && (q.kindOf != "" || !q.operationHead()) || !q.set() {
		return false
	}
	part.height, part.last = q.height, len(q.spreads)
	if !isFragment {
		q.operation = part
		return true
	}
	q.fragments = append(q.fragments, part)
	return len(q.fragments) <= maxQuickFragments
}

// operationHead reads what is before the set of an operation.
func (q *quick) operationHead() bool {
	if q.kind == '{' {
		q.kindOf = "query"
		return true
	}
	switch {
	case q.is("query"):
		q.kindOf = "query"
	case q.is("mutation"):
		q.kindOf = "mutation"
	case q.is("subscription"):
		q.kindOf = "subscription"
	default:
		return false
	}
	q.next()
	if q.kind == nameToken {
		q.name = q.value()
		q.next()
	}
	return q.variables() && q.directives()
}

// fragmentHead reads what is before the set of a fragment.
func (q *quick) fragmentHead(part *quickPart) bool {
	q.next()
	part.name = q.value()
	if q.kind != nameToken || part.name == "on" || q.fragment(part.name) != nil {
		return false
	}
	q.next()
	if !q.is("on") {
		return false
	}
	q.next()
	return q.expect(nameToken) && q.directives()
}

// fragment returns the fragment of a name, nil if there is none.
func (q *quick) fragment(name string) *quickPart {
	for i := range q.fragments {
		if q.fragments[i].name == name {
			return &q.fragments[i]
		}
	}
	return nil
}

// variables reads definitions of variables, if there are any.
func (q *quick) variables() bool {
	if q.kind != '(' {
		return true
	}
	q.next()
	for first := true; first || q.kind != ')'; first = false {
		if !q.expect('$') || !q.expect(nameToken) || !q.expect(':') || !q.typeName() {
			return false
		}
		if q.kind == '=' {
			if q.next(); !q.argument(true) {
				return false
			}
		}
		if !q.directives() {
			return false
		}
	}
	q.next()
	return true
}

func (q *quick) typeName() bool {
	if q.kind == '[' {
		if q.next(); !q.typeName() || !q.expect(']') {
			return false
		}
	} else if !q.expect(nameToken) {
		return false
	}
	if q.kind == '!' {
		q.next()
	}
	return true
}

// directives reads directives, if there are any.
func (q *quick) directives() bool {
	for q.kind == '@' {
		if q.next(); !q.expect(nameToken) || !q.arguments() {
			return false
		}
	}
	return true
}

// arguments reads arguments, if there are any.
func (q *quick) arguments() bool {
	if q.kind != '(' {
		return true
	}
	q.next()
	for first := true; first || q.kind != ')'; first = false {
		if !q.expect(nameToken) || !q.expect(':') || !q.argument(false) {
			return false
		}
	}
	q.next()
	return true
}

// argument reads a value, which has no variable if it is constant.
func (q *quick) argument(constant bool) bool {
	switch q.kind {
	case nameToken, numberToken, stringToken:
		q.next()
		return true
	case '$':
		q.next()
		return !constant && q.expect(nameToken)
	case '[':
		for q.next(); q.kind != ']'; {
			if !q.argument(constant) {
				return false
			}
		}
	case '{':
		for q.next(); q.kind != '}'; {
			if !q.expect(nameToken) || !q.expect(':') || !q.argument(constant) {
				return false
			}
		}
	default:
		return false
	}
	q.next()
	return true
}

// set reads a set of selections.
func (q *quick) set() bool {
	if !q.expect('{') {
		return false
	}
	q.level++
	q.height = max(q.height, q.level)
	for first := true; first || q.kind != '}'; first = false {
		var ok bool
		if q.kind == '.' {
			ok = q.spread()
		} else {
			ok = q.field()
		}
		if !ok {
			return false
		}
	}
	q.level--
	q.next()
	return true
}

func (q *quick) field() bool {
	name := q.value()
	if !q.expect(nameToken) {
		return false
	}
	if q.kind == ':' { // that was an alias
		q.next()
		if name = q.value(); !q.expect(nameToken) {
			return false
		}
	}
	root := q.atRoot
	if root && q.roots.add(rootField{q.kindOf, name}) != nil || !q.arguments() || !q.directives() {
		return false
	}
	if q.kind != '{' {
		return true
	}
	q.atRoot = false
	ok := q.set()
	q.atRoot = root
	return ok
}

// spread reads the spread of a fragment, or an inline fragment, whose fields at the root are fields of the root.
func (q *quick) spread() bool {
	q.next()
	if q.kind == nameToken && q.value() != "on" {
		q.spreads = append(q.spreads, quickSpread{q.value(), q.level})
		if q.atRoot || len(q.spreads) > maxQuickSpreads {
			return false
		}
		q.next()
		return q.directives()
	}
	if q.kind == nameToken {
		if q.next(); !q.expect(nameToken) {
			return false
		}
	}
	return q.directives() && q.set()
}

// measure returns how many sets are in each other below a definition, with those of the fragments that it spreads. It
// reports false if one of these is not there, or spreads itself.
func (q *quick) measure(part *quickPart) (height int, ok bool) {
	switch {
	case part.total == measuring:
		return 0, false
	case part.total > 0:
		return part.total, true
	}
	part.total, height = measuring, part.height
	for _, s := range q.spreads[part.first:part.last] {
		f := q.fragment(s.name)
		if f == nil {
			return 0, false
		}
		below, ok := q.measure(f)
		if !ok {
			return 0, false
		}
		height = max(height, s.level+below)
	}
	part.total = height
	return height, true
}
