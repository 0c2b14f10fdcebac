package dockerfile

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// ownFrontend is the directive that names the frontend by which engines are to read the file. It has no effect on the
// builder that aileron asks for; any other frontend could read the file in its own way.
var ownFrontend = regexp.MustCompile(`^#\s*syntax\s*=\s*docker/dockerfile(:[A-Za-z0-9._-]+)?\s*$`)

// sources returns the files of the context that ADD or COPY takes. What contains a variable may be any of them.
func (in instruction) sources() (sources []string, err error) {
	word, rest := strings.ToUpper(in.word), in.args
	for strings.HasPrefix(rest, "--") {
		option, after, _ := strings.Cut(rest, " ")
		name, _, _ := strings.Cut(option, "=")
		if name == "--from" {
			return nil, refusedLine(in.line, word+" with "+option+" behind another option", "put --from first")
		}
		if name != "--chown" && name != "--chmod" {
			return nil, refusedLine(in.line, word+" with "+option, "builders do not agree on this option; use "+word+
				" without it")
		}
		rest = strings.TrimLeft(after, " ")
	}
	args := strings.Fields(rest)
	if strings.HasPrefix(rest, "[") {
		args = nil
		if json.Unmarshal([]byte(rest), &args) != nil {
			return nil, refusedLine(in.line, word+" has no list of strings", `write it as ["SOURCE", "PLACE"]`)
		}
	}
	if len(args) < 2 {
		return nil, refusedLine(in.line, word+" has no source and place", "write "+word+" SOURCE PLACE")
	}
	for _, source := range args[:len(args)-1] {
		isURL := strings.HasPrefix(source, "https://") || strings.HasPrefix(source, "http://")
		switch {
		case word == "ADD" && strings.ContainsAny(source, "$\\\"'"):
			// A builder fetches URLs, and clones repositories with the credentials of the host.
			return nil, refusedLine(in.line, "ADD with "+source+" may be a repository", "use COPY, or write the URL as it is")
		case strings.ContainsAny(source, "$\\\"'"):
			sources = append(sources, ".")
			continue
		case word == "ADD" && isURL && !strings.Contains(strings.ToLower(source), ".git"):
			continue // fetched by the builder, as RUN does
		case strings.Contains(source, "://") || strings.HasPrefix(source, "git@"):
			return nil, refusedLine(in.line, word+" with "+source, "fetch it with RUN")
		}
		clean := path.Clean(strings.TrimLeft(source, "/"))
		if _, bad := path.Match(clean, ""); bad != nil {
			return nil, refusedLine(in.line, fmt.Sprintf("%s with %s, which is no pattern", word, source), "name the file")
		}
		if clean == ".." || strings.HasPrefix(clean, "../") {
			return nil, refusedLine(in.line, fmt.Sprintf("%s takes %s, which is outside of the context", word, source),
				"name what lies in the context, or set build.context to a directory above")
		}
		if clean == "" {
			clean = "."
		}
		sources = append(sources, clean)
	}
	return sources, nil
}
