// Package reach knows operations by which a service leads to what it hosts: see [Inside].
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

func isReaching(word string) bool {
	for _, w := range reaching {
		if strings.EqualFold(word, w) {
			return true
		}
	}
	return false
}

func isCapital(c byte) bool { return c >= 'A' && c <= 'Z' }
