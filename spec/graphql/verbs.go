package graphql

import (
	"slices"
	"strings"
	"unicode"
)

// deleting are the words of names that delete, wherever they stand in one.
var deleting = []string{"delete", "remove", "destroy", "purge", "erase", "wipe", "drop", "clear"}

// verbs are words with which names of mutations begin or end, and which say what they do.
var verbs = []string{"create", "add", "update", "edit", "set", "change", "rename", "move", "copy", "clone", "merge",
	"close", "reopen", "submit", "approve", "accept", "reject", "request", "invite", "transfer", "import", "export",
	"upload", "publish", "unpublish", "archive", "unarchive", "lock", "unlock", "mark", "unmark", "link", "unlink",
	"enable", "disable", "subscribe", "unsubscribe", "revoke", "rotate", "send", "start", "stop", "cancel", "resolve"}

// others is what a mutation does of whose name none of verbs is a part.
const others = "other"

// verbOf returns what a mutation does, by its name: "delete", one of verbs, or others. It is a guess, by which
// mutations are put together; all of them need an approval.
func verbOf(name string) string {
	list := words(name)
	switch {
	case deletes(name), slices.ContainsFunc(list, func(w string) bool { return slices.Contains(deleting, w) }):
		return deleting[0]
	case len(list) == 0:
		return others
	case slices.Contains(verbs, list[0]):
		return list[0]
	case slices.Contains(verbs, list[len(list)-1]) && list[len(list)-1] != "request": // as of enqueuePullRequest
		return list[len(list)-1]
	}
	return others
}

// states are the words of names that begin as one of deleting, and are about what is there, or no longer there.
var states = []string{"deleted", "removed", "destroyed", "purged", "erased", "wiped", "dropped", "cleared", "dropdown",
	"clearance"}

// deletes reports whether the name of a field begins with a word that deletes, also where nothing divides it from the
// next one: deleteall, DELETEuser. In doubt it does.
func deletes(name string) bool {
	list := words(name)
	if len(list) == 0 || slices.Contains(states, list[0]) {
		return false
	}
	name = strings.ToLower(strings.TrimLeft(name, "_"))
	return slices.ContainsFunc(deleting, func(w string) bool { return strings.HasPrefix(name, w) })
}

// words returns the words of a name in lower case: createLinkedBranch and create_linked_branch are the same.
func words(name string) (list []string) {
	begin := 0
	take := func(end int) {
		if word := strings.Trim(name[begin:end], "_"); word != "" {
			list = append(list, strings.ToLower(word))
		}
		begin = end
	}
	for i, c := range name {
		endsCapitals := i > 0 && i+1 < len(name) && unicode.IsLower(rune(name[i+1])) // as the D of URLDelete
		if i > 0 && (c == '_' || unicode.IsUpper(c) && (endsCapitals || !unicode.IsUpper(rune(name[i-1])))) {
			take(i)
		}
	}
	take(len(name))
	return list
}
