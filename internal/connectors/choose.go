package connectors

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec/openapi"
)

// The answers to what is to wait for an approval.
const (
	approveWrites  = "writes"
	approveDeletes = "deletes"
	approveNothing = "nothing"
)

// ChooseOperations asks the person at the terminal which groups of a document a connector takes, and what of them waits
// for an approval, unless opts says so or the document has few operations.
func ChooseOperations(ctx context.Context, c *console.Console, data []byte, opts *openapi.Options) error {
	if len(opts.Only)+len(opts.Groups) > 0 || !c.Interactive() {
		return nil
	}
	groups, err := openapi.Groups(data, *opts)
	if err != nil {
		return failure.OfInput(err, failure.ReasonDocument)
	}
	total := 0
	for _, g := range groups {
		total += g.Operations()
	}
	if total <= fewLines || len(groups) < 2 {
		return nil
	}
	PrintGroups(c, groups)
	for try := range console.MaxTries {
		answer, err := c.PromptLine(fmt.Sprintf("which groups of %d operations, separated by commas? [all]", total))
		if err != nil {
			return err
		}
		if answer == "" || strings.EqualFold(answer, "all") {
			break
		}
		unknown := ""
		if opts.Groups, unknown = chosen(answer, groups); unknown == "" {
			break
		}
		opts.Groups = nil
		c.Infof("aileron: the document has no group %s", unknown)
		if try == console.MaxTries-1 {
			return hint.New(errors.New("no group of the document was named"), "name them with --groups, or answer with all")
		}
	}
	if len(opts.Approve) > 0 || opts.ApproveNone {
		return nil
	}
	talk, err := c.Converse()
	if err != nil {
		return err
	}
	defer talk.End()
	answer, err := talk.Choose(ctx, "operations that wait for an approval",
		[]string{approveWrites, approveDeletes, approveNothing})
	switch answer {
	case approveDeletes:
		opts.Approve = []string{"DELETE *"}
	case approveNothing:
		opts.ApproveNone = true
	}
	return err
}

// chosen returns the groups that an answer names, or the first word of it that names none.
func chosen(answer string, groups []openapi.Group) (names []string, unknown string) {
	for word := range strings.SplitSeq(answer, ",") {
		word = strings.TrimSpace(word)
		found := ""
		for _, g := range groups {
			if g.Is(word) {
				found = g.Name
			}
		}
		if found == "" {
			return nil, strconv.Quote(failure.AsLine(word))
		}
		names = append(names, found)
	}
	return names, ""
}

// PrintGroups prints the groups of a document, and what their operations do.
func PrintGroups(c *console.Console, groups []openapi.Group) {
	for _, g := range groups {
		var does []string
		for _, part := range []struct {
			n    int
			what string
		}{{g.Reads, "read"}, {g.Writes, "write"}, {g.Deletes, "delete"}} {
			if part.n > 0 {
				does = append(does, fmt.Sprintf("%d %s", part.n, part.what))
			}
		}
		c.Infof("  %s: %s, %s", g.Name, hint.Plural(g.Operations(), "operation"), strings.Join(does, ", "))
	}
}
