package action

import (
	"fmt"
	"strings"
)

// places is the line of each key of a frontmatter, by its path: requires.connectors[0].hash.
type places map[string]int

// findPlaces finds the lines of keys. The decoder has accepted the text and keeps no lines. A key that is spelled in an
// unusual way is not found, and its table's line is used.
func findPlaces(front string) places {
	p, counts, table, quoted := places{}, map[string]int{}, "", ""
	number := 0
	for line := range strings.Lines(front) {
		number++
		line = strings.TrimSpace(line)
		if quoted != "" { // within a string of several lines
			if strings.Contains(line, quoted) {
				quoted = ""
			}
			continue
		}
		if header, ok := strings.CutPrefix(line, "["); ok {
			header, list := strings.CutPrefix(header, "[")
			name := cleanKey(header[:strings.IndexByte(header+"]", ']')])
			if list {
				counts[name]++
			}
			table = withCounts(name, counts)
			p.add(table, number)
			continue
		}
		left, right, ok := strings.Cut(line, "=")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		key := cleanKey(left)
		if table != "" {
			key = table + "." + key
		}
		p.add(key, number)
		for _, q := range []string{`"""`, `'''`} {
			if strings.Count(right, q) == 1 {
				quoted = q
			}
		}
	}
	return p
}

// add notes the line of a path and, if they have none, of the tables that it is in.
func (p places) add(path string, line int) {
	for path != "" {
		if _, known := p[path]; known {
			return
		}
		p[path] = line
		path = parentOf(path)
	}
}

// at returns "line N: path", with the line of the nearest table that has one.
func (p places) at(path string) string {
	for outer := path; outer != ""; outer = parentOf(outer) {
		if line, ok := p[outer]; ok {
			return fmt.Sprintf("line %d: %s", line, path)
		}
		if bare, _, list := strings.Cut(lastOf(outer), "["); list { // an entry of a list within one line
			if line, ok := p[strings.TrimSuffix(outer, lastOf(outer))+bare]; ok {
				return fmt.Sprintf("line %d: %s", line, path)
			}
		}
	}
	return path
}

func parentOf(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }
func lastOf(path string) string   { return path[strings.LastIndexByte(path, '.')+1:] }

// withCounts returns the path of a table that may be in the newest entry of a list of tables.
func withCounts(name string, counts map[string]int) string {
	path, plain := "", ""
	for part := range strings.SplitSeq(name, ".") {
		plain = strings.TrimPrefix(plain+"."+part, ".")
		path = strings.TrimPrefix(path+"."+part, ".")
		if n := counts[plain]; n > 0 {
			path = fmt.Sprintf("%s[%d]", path, n-1)
		}
	}
	return path
}

func cleanKey(s string) string {
	parts := strings.Split(s, ".")
	for i, part := range parts {
		parts[i] = strings.Trim(part, " \t\"'")
	}
	return strings.Join(parts, ".")
}
