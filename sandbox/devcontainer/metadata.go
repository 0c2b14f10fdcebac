package devcontainer

import (
	"encoding/json"
	"maps"
	"slices"
)

// MetadataLabel is the label in which an image asks for properties of a devcontainer.json, as those do that were built
// with features. None is in force: the image is not part of the project, and no person has agreed to what it asks for.
const MetadataLabel = "devcontainer.metadata"

// Bounds of what is read of a label, and printed of it.
const (
	maxMetadata = 256 << 10
	maxLabelled = 24
)

// AskedFor returns the properties that a MetadataLabel asks for, as words of a line. Names of features, and what is for
// other programs, is left out.
func AskedFor(label string) string {
	if label == "" {
		return ""
	}
	var parts []map[string]json.RawMessage
	if len(label) > maxMetadata || json.Unmarshal([]byte(label), &parts) != nil {
		var one map[string]json.RawMessage
		if len(label) > maxMetadata || json.Unmarshal([]byte(label), &one) != nil {
			return "what cannot be read"
		}
		parts = append(parts, one)
	}
	asked := map[string]bool{}
	for _, part := range parts {
		for name := range part {
			asked[name] = true
		}
	}
	delete(asked, "id")
	delete(asked, "customizations")
	names := slices.Sorted(maps.Keys(asked))
	more := ""
	if len(names) > maxLabelled {
		names, more = names[:maxLabelled], " and more"
	}
	return words(names) + more
}
