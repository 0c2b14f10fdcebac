package openapi

import (
	"bytes"
	"io"
	"strings"

	"github.com/yuin/goldmark"
	render "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/ALRubinger/aileron/spec/internal/foreign"
)

// prose makes plain text of what a document describes in Markdown (OpenAPI's CommonMark) or HTML.
type prose struct {
	markdown goldmark.Markdown
	made     map[described]string // many operations may refer to one description
	links    int                  // brackets that were parsed
}

// described is a description, and how much of it is wanted.
type described struct {
	text string
	most int
}

func newProse() *prose {
	// HTML in Markdown is rendered for the next step to strip: what reaches a connector is neither.
	return &prose{goldmark.New(goldmark.WithRendererOptions(render.WithUnsafe())), map[described]string{}, 0}
}

// The bounds of what is parsed as Markdown. What a bracket costs grows with the number of those before it.
const (
	maxLinks    = 64      // of one description: more are no links
	maxAllLinks = 500_000 // of a document
)

// text returns the text of a description on one line, of at most most bytes, as [foreign.Clean] does. What is far
// beyond that is not read.
func (p *prose) text(text string, most int) string {
	text = text[:min(len(text), 8*most+512)]
	if !strings.ContainsAny(text, "<&[*_`#\\|~") {
		return foreign.Clean(text, most)
	}
	key := described{text, most}
	plain, known := p.made[key]
	if !known {
		plain = p.convert(text, most)
		p.made[key] = plain
	}
	return plain
}

// convert is text for what may be Markdown.
func (p *prose) convert(text string, most int) string {
	links := strings.Count(text, "[")
	if p.links += links; links > maxLinks || p.links > maxAllLinks {
		return foreign.Clean(text, most)
	}
	var page bytes.Buffer
	if err := p.markdown.Convert([]byte(text), &page); err != nil {
		return foreign.Clean(text, most)
	}
	return foreign.Clean(visible(&page), most)
}

// visible returns the text of HTML. What looks like a tag and is none, such as list<string>, is text.
func visible(page io.Reader) string {
	var b strings.Builder
	hidden := 0 // elements that are not shown
	for z := html.NewTokenizer(page); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken: // io.EOF
			return b.String()
		case html.TextToken:
			if hidden == 0 {
				b.Write(z.Text())
			}
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			raw := string(z.Raw()) // Token takes it
			switch t := z.Token(); {
			case t.DataAtom == atom.Script || t.DataAtom == atom.Style:
				if kind == html.StartTagToken {
					hidden++
				} else if kind == html.EndTagToken && hidden > 0 {
					hidden--
				}
			case isBlock(t.DataAtom):
				b.WriteByte(' ')
			case !isInline(t.DataAtom) && hidden == 0:
				b.WriteString(raw)
			}
		case html.CommentToken, html.DoctypeToken:
		}
	}
}

// isInline reports whether an element stands in a line of text.
func isInline(a atom.Atom) bool {
	switch a {
	case atom.A, atom.Abbr, atom.B, atom.Cite, atom.Code, atom.Em, atom.Font, atom.I, atom.Img, atom.Kbd, atom.Mark,
		atom.Q, atom.S, atom.Samp, atom.Small, atom.Span, atom.Strong, atom.Sub, atom.Sup, atom.Tt, atom.U, atom.Var:
		return true
	}
	return false
}

// isBlock reports whether an element ends a line of text.
func isBlock(a atom.Atom) bool {
	switch a {
	case atom.P, atom.Div, atom.Br, atom.Hr, atom.Ul, atom.Ol, atom.Li, atom.Dl, atom.Dt, atom.Dd, atom.H1, atom.H2,
		atom.H3, atom.H4, atom.H5, atom.H6, atom.Pre, atom.Blockquote, atom.Table, atom.Caption, atom.Thead,
		atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th, atom.Section, atom.Article, atom.Aside, atom.Details,
		atom.Summary, atom.Figure, atom.Figcaption, atom.Center, atom.Header, atom.Footer, atom.Main, atom.Nav:
		return true
	}
	return false
}
