package publishing

import (
	"fmt"
	"strings"

	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/hint"
)

// ChangeJSON is a change in --json.
type ChangeJSON struct {
	Level string `json:"level"`
	What  string `json:"what"`
}

// BumpedJSON is the result of [Bump] in --json.
type BumpedJSON struct {
	FQN     string       `json:"fqn"`
	From    string       `json:"from"`
	To      string       `json:"to"`    // the same as From: nothing was written
	Since   string       `json:"since"` // the tag or archive of the last release; "": there is none
	Due     string       `json:"due"`   // major, minor, patch or none
	Changes []ChangeJSON `json:"changes"`
	Files   []string     `json:"files"` // that were written
}

// JSON returns the result for --json.
func (b Bumped) JSON() BumpedJSON {
	return BumpedJSON{b.FQN, b.From, b.To, b.Last.From, b.Due.String(), changesJSON(b.Changes),
		append([]string{}, b.Files...)}
}

func changesJSON(changes []Change) []ChangeJSON {
	all := []ChangeJSON{}
	for _, c := range changes {
		all = append(all, ChangeJSON{c.Level.String(), c.Text})
	}
	return all
}

// found returns what the files are compared with, and what is due.
func (b Bumped) found() string {
	switch {
	case b.Last.Connector == nil:
		return fmt.Sprintf("%s %s: there is no release to compare with", b.FQN, b.From)
	case b.Due == None:
		return fmt.Sprintf("%s %s: nothing has changed since %s", b.FQN, b.From, b.Last.From)
	}
	return fmt.Sprintf("%s %s: %s since %s, for which %s is due", b.FQN, b.From, hint.Plural(len(b.Changes), "change"),
		b.Last.From, b.Due)
}

// Print prints the changes, what is due, and what was done if a level was asked for.
func (b Bumped) Print(c *console.Console, asked Level) {
	c.Infof("%s", b.found())
	for _, change := range b.Changes {
		fmt.Fprintf(c.Stdout, "%s  %s\n", change.Level, change.Text)
	}
	if asked != None {
		fmt.Fprintf(c.Stdout, "%s\n", b.result())
	}
}

func (b Bumped) result() string {
	if b.From == b.To {
		return b.To + " already"
	}
	return fmt.Sprintf("%s -> %s in %s", b.From, b.To, strings.Join(b.Files, ", "))
}

// ReleasedJSON is the result of [Release] in --json.
type ReleasedJSON struct {
	FQN      string   `json:"fqn"`
	Version  string   `json:"version"`
	Hash     string   `json:"hash"`
	File     string   `json:"file"`
	Asset    string   `json:"asset"` // the name that the file must have among the assets of the release
	Tag      string   `json:"tag"`
	Tagged   bool     `json:"tagged"`  // the tag was there before
	KeyIDs   []string `json:"key_ids"` // of the signatures
	Since    string   `json:"since"`
	Due      string   `json:"due"`
	Commands []string `json:"commands"` // what is left to do
	Notes    []string `json:"notes"`
}

// JSON returns the result for --json.
func (rel Released) JSON() ReleasedJSON {
	j := ReleasedJSON{FQN: string(rel.Connector.FQN), Version: rel.Connector.Version, Hash: rel.Connector.Hash,
		File: rel.Archive, Asset: rel.Asset, Tag: rel.Tag, Tagged: rel.Tagged, KeyIDs: []string{}, Since: rel.Last.From,
		Due: rel.Due.String(), Commands: append([]string{}, rel.Commands...), Notes: append([]string{}, rel.Notes...)}
	for _, k := range rel.Keys {
		j.KeyIDs = append(j.KeyIDs, k.ID().String())
	}
	return j
}

// Print prints what was done, and the commands that are left to stdout.
func (rel Released) Print(c *console.Console, dry bool) {
	for _, line := range rel.lines(dry) {
		c.Infof("%s", line)
	}
	for _, command := range rel.Commands {
		fmt.Fprintln(c.Stdout, command)
	}
}

func (rel Released) lines(dry bool) (all []string) {
	packed, tagged := "packed", "tagged the commit as "+rel.Tag
	if dry {
		packed, tagged = "would pack", "would tag the commit as "+rel.Tag
	}
	if rel.Tagged {
		tagged = "the commit has the tag " + rel.Tag + " already"
	}
	all = append(all, fmt.Sprintf("%s %s %s %s into %s", packed, rel.Connector.FQN, rel.Connector.Version,
		rel.Connector.Hash, rel.Archive))
	for _, k := range rel.Keys {
		all = append(all, "signed with the key "+k.ID().String())
	}
	all = append(all, tagged)
	for _, note := range rel.Notes {
		all = append(all, "note: "+note)
	}
	return append(all, "next:")
}
