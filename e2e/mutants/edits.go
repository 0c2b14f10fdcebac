package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// editsOf returns the mutants that can be made of a file of Go, in the order of its lines: each changes one line in one
// place. An edit need not compile: the types of operands are not known.
func editsOf(file string, source []byte) ([]mutant, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	e := editor{file: file, source: string(source), set: set}
	ast.Inspect(tree, func(n ast.Node) bool {
		e.visit(n)
		return true
	})
	slices.SortStableFunc(e.found, func(a, b mutant) int { return a.line - b.line })
	return slices.CompactFunc(e.found, func(a, b mutant) bool { return a.line == b.line && a.new == b.new }), nil
}

// editor collects the edits of a file.
type editor struct {
	file   string
	source string
	set    *token.FileSet
	found  []mutant
}

// replace adds the edit that puts a text in the place of what is from one position to another, if that is one line.
func (e *editor) replace(from, to token.Pos, text string) {
	a, b := e.set.Position(from), e.set.Position(to)
	if a.Line != b.Line {
		return
	}
	start := strings.LastIndexByte(e.source[:a.Offset], '\n') + 1
	end := b.Offset + strings.IndexByte(e.source[b.Offset:]+"\n", '\n')
	pkg := "./" + filepath.ToSlash(filepath.Dir(e.file))
	e.found = append(e.found, mutant{
		id: fmt.Sprintf("%s:%d", e.file, a.Line), file: e.file, line: a.Line, pkg: pkg, run: ".",
		old: e.source[start:end], new: e.source[start:a.Offset] + text + e.source[b.Offset:end],
	})
}

func (e *editor) text(n ast.Expr) string {
	return e.source[e.set.Position(n.Pos()).Offset:e.set.Position(n.End()).Offset]
}

var (
	// neighbours are what stands for an operator that was confused with another.
	neighbours = map[token.Token]token.Token{
		token.LAND: token.LOR, token.LOR: token.LAND,
		token.EQL: token.NEQ, token.NEQ: token.EQL,
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	}
	sums = map[token.Token]token.Token{token.ADD: token.SUB, token.SUB: token.ADD}
)

func (e *editor) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.IfStmt:
		e.negate(n.Cond)
		if n.Else == nil && leaves(n.Body) {
			e.replace(n.Cond.Pos(), n.Cond.End(), "false && ("+e.text(n.Cond)+")")
		}
	case *ast.ForStmt:
		e.number(n.Cond)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			for _, c := range n.Body.List {
				for _, cond := range c.(*ast.CaseClause).List {
					e.negate(cond)
				}
			}
		}
	case *ast.BinaryExpr:
		e.binary(n)
	case *ast.ReturnStmt:
		e.returned(n)
	case *ast.SliceExpr:
		e.number(n.Low)
		e.number(n.High)
	}
}

// negate adds the edit to the opposite of a condition. A comparison for equality has its own.
func (e *editor) negate(cond ast.Expr) {
	if b, ok := cond.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
		return
	}
	if not, ok := cond.(*ast.UnaryExpr); ok && not.Op == token.NOT {
		e.replace(cond.Pos(), cond.End(), e.text(not.X))
		return
	}
	e.replace(cond.Pos(), cond.End(), "!("+e.text(cond)+")")
}

func (e *editor) binary(b *ast.BinaryExpr) {
	if other, ok := neighbours[b.Op]; ok {
		e.replace(b.OpPos, b.OpPos+token.Pos(len(b.Op.String())), other.String())
		e.number(b.X)
		e.number(b.Y)
	}
	// A number beside it shows that no text is appended.
	if other, ok := sums[b.Op]; ok && (isNumber(b.X) || isNumber(b.Y)) {
		e.replace(b.OpPos, b.OpPos+1, other.String())
	}
}

// returned adds the edits of what is returned: nil for an error that has a name, and the other of true and false.
func (e *editor) returned(r *ast.ReturnStmt) {
	for i, v := range r.Results {
		name, ok := v.(*ast.Ident)
		switch {
		case !ok:
		case name.Name == "err" && i == len(r.Results)-1:
			e.replace(v.Pos(), v.End(), "nil")
		case name.Name == "true":
			e.replace(v.Pos(), v.End(), "false")
		case name.Name == "false":
			e.replace(v.Pos(), v.End(), "true")
		}
	}
}

// number adds the edit of a whole number to the next.
func (e *editor) number(n ast.Expr) {
	if !isNumber(n) {
		return
	}
	if v, err := strconv.Atoi(e.text(n)); err == nil {
		e.replace(n.Pos(), n.End(), strconv.Itoa(v+1))
	}
}

func isNumber(n ast.Expr) bool {
	lit, ok := n.(*ast.BasicLit)
	return ok && lit.Kind == token.INT
}

// leaves reports whether a block does nothing but end what it is in.
func leaves(b *ast.BlockStmt) bool {
	if len(b.List) != 1 {
		return false
	}
	switch b.List[0].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}
