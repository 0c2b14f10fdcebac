package launch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/gitlayout"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/spec"
)

// gitHTTPSFile has the rules by which git uses HTTPS for URLs of SSH. It is included after all other settings: of rules
// for the same beginning of a URL, git takes the first, and one of the image, a user or a repository may name a mirror.
const gitHTTPSFile = "/etc/aileron/gitconfig-https"

// sshForms are the usual beginnings of URLs that lead to a host's repositories past HTTPS. GitHub's SSH on port 443 is
// at ssh.github.com, GitLab's and Bitbucket's at altssh.
var sshForms = []string{"git@%s:", "%s:", "ssh://git@%s/", "ssh://%s/", "ssh://git@%s:22/", "git+ssh://git@%s/",
	"ssh+git://git@%s/", "git://%s/", "ssh://git@ssh.%s:443/", "ssh://git@altssh.%s:443/"}

// httpsFile returns rules that make git use HTTPS for all URLs of SSH to the hosts: those of the usual forms, and those
// of the repository's remotes and submodules, as in org-1@github.com:.
func httpsFile(own gitlayout.Settings, hosts []string) sandbox.File {
	var text strings.Builder
	for _, host := range hosts {
		fmt.Fprintf(&text, "[url %s]\n", quoteGit("https://"+host+"/"))
		for _, form := range sshForms {
			fmt.Fprintf(&text, "\tinsteadOf = "+form+"\n", host)
		}
	}
	var more []string
	for _, name := range slices.Sorted(maps.Keys(own)) {
		remote := strings.HasPrefix(name, "remote.") || strings.HasPrefix(name, "submodule.")
		if !remote || !strings.HasSuffix(name, ".url") && !strings.HasSuffix(name, ".pushurl") {
			continue
		}
		for _, url := range own[name] {
			if form, _, _ := cutSSH(url); form != "" {
				if https := overHTTPS(form, hosts); https != "" {
					more = append(more, urlRule(https, "insteadOf", form))
				}
			}
		}
	}
	slices.Sort(more)
	more = slices.Compact(more)
	text.WriteString(strings.Join(more[:min(len(more), maxGitVariables)], ""))
	return sandbox.File{Path: gitHTTPSFile, Mode: 0o644, Data: []byte(text.String())}
}

// insteadOfSSH returns rules that win over those of settings that lead to SSH: git uses HTTPS for what such a rule
// would turn into a URL of SSH to one of the hosts, and leaves alone what is a URL of HTTPS to one. Rules that lead
// anywhere else have their effect.
func insteadOfSSH(settings gitlayout.Settings, hosts []string) string {
	var rules []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		base, is := strings.CutPrefix(name, "url.")
		end := max(strings.LastIndexByte(base, '.'), 0)
		base, key := base[:end], base[end:]
		if _, _, ssh := cutSSH(base); !is || !ssh || key != ".insteadof" && key != ".pushinsteadof" {
			continue
		}
		for _, from := range settings[name] {
			to := overHTTPS(base, hosts)
			if to == "" && slices.ContainsFunc(hosts, func(host string) bool {
				https := "https://" + host + "/"
				return from != "" && (strings.HasPrefix(https, from) || strings.HasPrefix(from, https))
			}) {
				to = from
			}
			if to != "" && len(rules) < maxGitVariables {
				rules = append(rules, urlRule(to, key[1:], from))
			}
		}
	}
	return strings.Join(rules, "")
}

func urlRule(to, key, from string) string {
	return "[url " + quoteGit(to) + "]\n\t" + key + " = " + quoteGit(from) + "\n"
}

// overHTTPS returns what a URL of SSH, or the beginning of one, is over HTTPS; "" if it leads to none of the hosts.
func overHTTPS(url string, hosts []string) string {
	form, host, _ := cutSSH(url)
	usual, is := strings.CutPrefix(host, "ssh.")
	if !is {
		usual = strings.TrimPrefix(host, "altssh.")
	}
	for _, h := range hosts {
		if form != "" && (h == host || h == usual) {
			return "https://" + h + "/" + strings.TrimLeft(url[len(form):], "/")
		}
	}
	return ""
}

// cutSSH returns the beginning of a URL of SSH, or of git's own protocol, that ends before the path, and its host (git
// help urls). Both are "" where the text ends before that. ssh reports whether it is such a URL.
func cutSSH(url string) (form, host string, ssh bool) {
	scheme, rest, hasScheme := strings.Cut(url, "://")
	end := "/"
	if !hasScheme { // USER@HOST:PATH
		rest, end = url, ":"
	} else if !slices.Contains([]string{"ssh", "git+ssh", "ssh+git", "git"}, scheme) {
		return "", "", false
	}
	host, path, complete := strings.Cut(rest, end)
	if !hasScheme && (!complete || strings.Contains(host, "/") || strings.HasPrefix(path, ":")) { // HELPER::ADDRESS
		return "", "", false
	}
	if !complete {
		return "", "", true
	}
	form = url[:len(url)-len(path)]
	host = host[strings.LastIndexByte(host, '@')+1:]
	host, _, _ = strings.Cut(host, ":") // its port
	return form, strings.ToLower(host), true
}

// gitHosts returns the hosts of which connectors allow repositories over HTTPS.
func gitHosts(connectors []*spec.Connector) []string {
	var hosts []string
	for _, c := range connectors {
		for _, t := range c.Tools {
			for _, op := range t.Operations {
				for _, h := range op.Hosts {
					if h.Port == 443 && !h.Wildcard && op.IsRepository() {
						hosts = append(hosts, h.Name)
					}
				}
			}
		}
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	return hosts[:min(len(hosts), maxGitHosts)]
}

// maxGitHosts bounds the hosts in git's settings, which git reads with each command.
const maxGitHosts = 256
