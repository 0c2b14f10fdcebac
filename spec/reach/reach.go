// Package reach knows operations by which a service leads to what it hosts: see [Inside] and [Below].
package reach

import "strings"

// reaching are words in the names and paths of operations by which a service runs commands in what it hosts, or leads
// on to it: pods/{name}/exec of Kubernetes, containers/{id}/attach of Docker. GET is their method, too.
var reaching = []string{"exec", "attach", "proxy", "portforward", "port-forward"}

// Inside reports whether an operation of this name and path leads to what the service hosts, as exec, attach,
// proxy and portforward do: its method does not bound what it does then.
func Inside(name, path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if isReaching(segment) {
			return true
		}
	}
	begin := 0
	for i := 1; i <= len(name); i++ {
		isEnd := i == len(name) || strings.IndexByte("._:-", name[i]) >= 0 || isCapital(name[i]) && !isCapital(name[i-1])
		if !isEnd {
			continue
		}
		if isReaching(name[begin:i]) {
			return true
		}
		begin = i
		if i < len(name) && !isCapital(name[i]) {
			begin++
		}
	}
	lower := strings.ToLower(name)
	return strings.Contains(lower, "portforward") || strings.Contains(lower, "port-forward")
}

// Below reports whether the end of a path is open to those of [Inside]: a variable for any number of segments that
// stands behind one word at most, not counting api and versions, or behind one that stands for what a service hosts; or
// two variables or more behind a word for what runs, of which the last may be exec.
func Below(path string) bool {
	words, hosts, variables := 0, false, -1 // behind a word for what runs; -1: the last word is another
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, segment := range segments {
		isVariable := strings.Contains(segment, "{")
		isVersion := len(segment) > 1 && segment[0] == 'v' && segment[1] >= '0' && segment[1] <= '9'
		switch {
		case isVariable && variables >= 0:
			variables++
		case !isVariable:
			variables = -1
			if isOneOf(running, segment) {
				variables = 0
			}
		}
		switch {
		case i == len(segments)-1:
			return strings.HasSuffix(segment, "...}") && (hosts || words <= 1) || variables > 1
		case isOneOf(hosting, segment):
			hosts = true
		case isVariable, isVersion, segment == "api", segment == "apis":
		default:
			words++
		}
	}
	return false
}

// hosting are words in paths for what a service runs.
var hosting = []string{"pods", "containers", "services", "nodes", "namespaces", "clusters", "instances", "machines",
	"sandboxes", "deployments", "jobs", "apps"}

// running are those of hosting whose names alone say that a command can be run in them.
var running = []string{"pods", "containers", "nodes", "instances", "machines", "sandboxes", "deployments", "jobs"}

func isReaching(word string) bool { return isOneOf(reaching, word) }

// isOneOf reports whether a word is one of the words, in any case.
func isOneOf(words []string, word string) bool {
	for _, w := range words {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

func isCapital(c byte) bool { return c >= 'A' && c <= 'Z' }
