package openapi

import (
	"net/url"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/internal/foreign"
)

// serverAddress is where the requests of operations go.
type serverAddress struct {
	hosts []string
	base  string // of the path, without a slash at the end
	why   string // there is none
}

// maxServers bounds the servers of an operation.
const maxServers = 64

// server returns where an operation's requests go: the servers of the operation, its path, or the document.
func (r *reader) server(f found) (serverAddress, string) {
	list := r.root.get("servers")
	for _, owner := range []*node{f.item, f.op} {
		if own := owner.get("servers"); own.size() > 0 {
			list = own
		}
	}
	if r.servers == nil {
		r.servers = map[*node]*serverAddress{}
	}
	at := r.servers[list]
	if at == nil {
		at = r.address(list)
		r.servers[list] = at
	}
	return *at, at.why
}

// address returns the address of a list of servers. The path of the first one that a connector can name is the base;
// servers with another path, which make another request, are left out.
func (r *reader) address(list *node) *serverAddress {
	at := &serverAddress{}
	chosen := false
	for i, s := range list.first(maxServers + 1) {
		if i == maxServers {
			r.notes.Add("servers beyond 64 of a list", "")
			break
		}
		host, base, why := r.readServer(s)
		shown := foreign.Clean(s.get("url").scalar(), 80)
		switch {
		case why != "" && (r.opts.Host == "" || i > 0):
			r.notes.Add("servers that "+why, shown)
		case chosen && base != at.base:
			r.notes.Add("servers whose path is not that of the first", shown)
		case r.opts.Host != "":
			at.hosts, at.base, chosen = []string{r.opts.Host}, base, true
		case !slices.Contains(at.hosts, host):
			at.hosts, at.base, chosen = append(at.hosts, host), base, true
		}
	}
	switch {
	case chosen:
	case r.opts.Host != "":
		at.hosts = []string{r.opts.Host}
	default:
		at.why = "servers name no host that a connector can: pass --host"
	}
	return at
}

// readServer returns the host and the path of a server, or why a connector cannot name it.
func (r *reader) readServer(s *node) (host, base, why string) {
	text := s.get("url").scalar()
	if len(text) > 2048 {
		return "", "", "have a URL that is too long"
	}
	vars := s.get("variables")
	for i, name := range vars.firstKeys(maxServers) {
		if !strings.Contains(text, "{"+name+"}") {
			continue
		}
		value := vars.items[i].get("default").scalar()
		if len(value) > 200 {
			return "", "", "have a variable that is too long"
		}
		text = strings.ReplaceAll(text, "{"+name+"}", value)
		if len(text) > 4096 {
			return "", "", "have a URL that is too long"
		}
		r.notes.Add("other values of variables of servers than the default", foreign.Clean(name+" = "+value, 80))
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || strings.ContainsAny(text, "{}"):
		return "", "", "have a variable without a default, or are no URL"
	case u.Host == "":
		return "", strings.TrimRight(u.EscapedPath(), "/"), "are relative to where the document is"
	case u.Scheme == "http":
		return "", "", "are in clear (http)"
	case u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", "", "are no https URL of a host and a path"
	}
	host = strings.ToLower(strings.TrimSuffix(u.Host, ":443"))
	if _, err := spec.ParseHost(host); err != nil {
		return "", "", "have a host that no connector can name"
	}
	return host, strings.TrimRight(u.EscapedPath(), "/"), ""
}
