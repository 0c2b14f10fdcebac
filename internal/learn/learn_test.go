package learn

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// templates returns the templates of requests, "METHOD /path" each.
func templates(requests ...string) (all []string) {
	var t Tree
	for i, r := range requests {
		method, path, _ := strings.Cut(r, " ")
		t.Add(Request{Host: "api.example", Port: 443, Method: method, Path: path, Row: fmt.Sprintf("%026d", i)})
	}
	for _, op := range t.Operations() {
		all = append(all, op.Method+" "+op.Template())
	}
	return all
}

// repeat returns a request for each number.
func repeat(format string, n int) (all []string) {
	words := strings.Fields("amber birch cedar dahlia ember fern ginger hazel iris juniper kelp lotus maple nettle " +
		"olive poppy quince rose sage thyme umber violet willow yarrow zinnia")
	for i := range n {
		all = append(all, fmt.Sprintf(format, words[i%len(words)]+strings.Repeat("-"+words[i/len(words)%len(words)],
			min(i/len(words), 1))))
	}
	return all
}

func TestPathsBecomeTemplates(t *testing.T) {
	for name, c := range map[string]struct{ requests, want []string }{
		"GitHub": {[]string{"GET /repos/acme/widget/issues/7", "GET /repos/acme/widget/issues/12",
			"POST /repos/acme/widget/issues", "GET /repos/acme/widget/commits/0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
			"GET /user", "GET /rate_limit", "GET /repos/acme/widget/git/refs/heads/main"},
			[]string{"GET /rate_limit", "GET /repos/acme/widget/commits/{commit}",
				"GET /repos/acme/widget/git/refs/heads/main", "POST /repos/acme/widget/issues",
				"GET /repos/acme/widget/issues/{issue}", "GET /user"}},
		"many repositories": {repeat("GET /repos/acme/%s/pulls", 20), []string{"GET /repos/acme/{acme}/pulls"}},
		"few repositories":  {repeat("GET /repos/acme/%s", 2), []string{"GET /repos/acme/amber", "GET /repos/acme/birch"}},
		"npm": {[]string{"GET /left-pad", "GET /left-pad/-/left-pad-1.3.0.tgz", "GET /@babel%2fcore",
			"GET /@babel%2Ftypes", "POST /-/npm/v1/security/advisories/bulk"},
			[]string{"POST /-/npm/v1/security/advisories/bulk", "GET /left-pad", "GET /left-pad/-/{version}", "GET /{name}"}},
		"Go's proxy": {[]string{"GET /github.com/spf13/cobra/@v/v1.8.0.info", "GET /github.com/spf13/cobra/@v/v1.8.0.zip",
			"GET /github.com/spf13/cobra/@v/list", "GET /golang.org/x/net/@v/v0.0.0-20260101000000-abcdefabcdef.mod",
			"GET /sumdb/sum.golang.org/lookup/rsc.io/quote@v1.5.2", "GET /sumdb/sum.golang.org/tile/8/0/x001/234"},
			[]string{"GET /github.com/spf13/cobra/@v/{v}", "GET /golang.org/x/net/@v/{v}",
				"GET /sumdb/sum.golang.org/lookup/rsc.io/{rsc_io}",
				"GET /sumdb/sum.golang.org/tile/{tile}/{tile2}/x001/{x001}"}},
		"apt": {[]string{"GET /debian/dists/bookworm/InRelease",
			"GET /debian/dists/bookworm/main/binary-amd64/by-hash/SHA256/" +
				strings.Repeat("0f", 32), "GET /debian/pool/main/c/curl/curl_7.88.1-10_amd64.deb"},
			[]string{"GET /debian/dists/bookworm/InRelease",
				"GET /debian/dists/bookworm/main/binary-amd64/by-hash/SHA256/{sha256}", "GET /debian/pool/main/c/curl/{curl}"}},
		"Slack": {[]string{"POST /api/chat.postMessage", "GET /api/conversations.list"},
			[]string{"POST /api/chat.postMessage", "GET /api/conversations.list"}},
		"Kubernetes": {[]string{"GET /api/v1/namespaces/default/pods/web-6d4cf56db6-x2x7k/log",
			"GET /apis/apps/v1/namespaces/default/deployments", "GET /apis/policy/v1beta1/namespaces/default/budgets"},
			[]string{"GET /api/v1/namespaces/default/pods/{pod}/log", "GET /apis/apps/v1/namespaces/default/deployments",
				"GET /apis/policy/v1beta1/namespaces/default/budgets"}},
		"ids and dates": {[]string{"GET /v2/users/550e8400-e29b-41d4-a716-446655440000", "GET /2.0/days/2026-11-28",
			"GET /v2/jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV/", "DELETE /v2/users/550e8400-e29b-41d4-a716-446655440001"},
			[]string{"GET /2.0/days/{day}", "GET /v2/jobs/{job}/", "DELETE /v2/users/{user}", "GET /v2/users/{user}"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := templates(c.requests...); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// Reads of many names are one operation; of requests that write, each stands for itself for longer.
func TestRequestsThatWriteAreNamedForLonger(t *testing.T) {
	if got := templates(repeat("POST /api/%s", 20)...); len(got) != 20 {
		t.Errorf("20 requests that write are %d operations: %v", len(got), got)
	}
	if got := templates(repeat("POST /api/%s", 60)...); !slices.Equal(got, []string{"POST /api/{api}"}) {
		t.Errorf("60 requests that write are %v", got)
	}
}

// Reads side by side do not make a variable through which a write passes that no request was.
func TestAVariableOfReadsTakesNoWrite(t *testing.T) {
	got := templates(append(repeat("GET /things/%s", 20), "DELETE /things/all")...)
	if !slices.Equal(got, []string{"DELETE /things/all", "GET /things/{thing}"}) {
		t.Errorf("got %v", got)
	}
}

var secrets = []string{"ghp_16C7e42F292c6912E7710c838347Ae178B4a", "sk-ant-api03-AbCdEf0123456789",
	"xoxb-1234567890-abcdefABCDEF", "AKIAIOSFODNN7EXAMPLE",
	"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
	"bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw", "glpat-Ab12Cd34Ef56Gh78", "XqTbNwRkLmVpZsYdHgFj",
	"Zm9vYmFyYmF6cXV4MTIz", "a8Kd93JsLq02", strings.Repeat("0123456789abcdef", 4), "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"}

// What looks like a secret is in no template, whatever stands around it.
func TestASecretInAPathIsInNoTemplate(t *testing.T) {
	for _, secret := range secrets {
		for _, at := range []string{"/%s", "/%s/sendMessage", "/services/T024BE7LH/%s", "/v1/%s.json", "/v1/x-%s",
			"/v1/key:%s"} {
			path := fmt.Sprintf(at, secret)
			if got := templates("GET " + path); strings.Contains(strings.Join(got, ""), secret) || len(got) != 1 {
				t.Errorf("%s is %v", path, got)
			}
			if got := Shape(path); strings.Contains(got, secret) {
				t.Errorf("the shape of %s is %s", path, got)
			}
		}
		if names, odd := QueryNames("page=1&" + secret + "=x&" + secret); !odd || !slices.Equal(names, []string{"page"}) {
			t.Errorf("%s in a query: %v, %t", secret, names, odd)
		}
	}
	// Without a digit, it is the pairs of letters that tell.
	for _, secret := range []string{"qmzvkepuxjaohwicydtb", "KpaeovjQzuwyXiqhbomF", "lorqupzaxebiwokijuvefy"} {
		if got := fmt.Sprint(templates("GET /v1/"+secret), Shape("/v1/"+secret)); strings.Contains(got, secret) {
			t.Errorf("%s is %s", secret, got)
		}
	}
	for _, query := range []string{"hunter", "page&hunter", "Zm9vYmFyYmF6cXV4cXV1eA==", "correcthorsebattery="} {
		if names, odd := QueryNames("sort=&" + query); !odd || !slices.Equal(names, []string{"sort"}) {
			t.Errorf("of %s, %v are noted as names, others: %t", query, names, odd)
		}
	}
	for _, path := range []string{"/webhooks/hunter2hunter2", "/reset/abc12345"} {
		if got := templates("GET " + path); strings.Contains(strings.Join(got, ""), "2") {
			t.Errorf("%s is %v", path, got)
		}
	}
}

func TestWordsAreNoSecrets(t *testing.T) {
	for _, w := range strings.Fields("repositories internationalization chat.postMessage " +
		"listPullRequestsAssociatedWithCommit binary-amd64 x86_64 sha256 debian12 v1beta1 oauth2 deployments @babel " +
		"left-pad InRelease Packages.xz horizontalpodautoscalers validatingwebhookconfigurations " +
		"advisories _search .well-known openid-configuration lodash._reinterpolate graphql i18n") {
		if k := KindOf(w, []string{"x"}); k != Literal {
			t.Errorf("%s is of kind %d", w, k)
		}
	}
}

// A sandbox can send any number of paths: what a tree holds, and what it returns, is bounded.
func TestNoiseIsBounded(t *testing.T) {
	var tree Tree
	for i := range 100_000 {
		word := ""
		for n := i; len(word) < 6; n = n*7 + 3 {
			word += string(rune('a' + n%26))
		}
		path := "/" + word + "/" + word[3:] + "/" + word[2:5]
		tree.Add(Request{Host: fmt.Sprintf("h%d.example", i%500), Port: 443, Method: "GET", Path: path, Row: "x"})
		if tree.nodes > 2*maxNodes {
			t.Fatalf("%d nodes after %d paths", tree.nodes, i)
		}
	}
	if ops := tree.Operations(); len(ops) > 10_000 || tree.LeftOut == 0 {
		t.Errorf("%d operations, %d left out", len(ops), tree.LeftOut)
	}
}

// Few literals side by side, at many places, fill a tree as well.
func TestWideNoiseIsBounded(t *testing.T) {
	var tree Tree
	word := func(n int) string { return string([]byte{'w', byte('a' + n/26), byte('a' + n%26)}) }
	for i := range 250 * 200 {
		path := "/" + word(i%200) + "/at"
		tree.Add(Request{Host: word(i/200) + ".example", Port: 443, Method: "GET", Path: path, Row: "x"})
		if tree.nodes > maxNodes+maxSegments {
			t.Fatalf("%d nodes after %d paths", tree.nodes, i)
		}
	}
}

func TestThePathsThatNoTemplateHasAreCounted(t *testing.T) {
	var tree Tree
	for _, path := range []string{"", "x", "/a//b", "/../b", "/a;b", "/a%2e%2e", "/a%00", "/%2fb", "/a/{b}",
		"/" + strings.Repeat("a/", 60)} {
		if tree.Add(Request{Host: "a.example", Port: 443, Method: "GET", Path: path}) {
			t.Errorf("%q is taken", path)
		}
	}
	if tree.LeftOut != 10 || len(tree.Operations()) != 0 {
		t.Errorf("%d left out", tree.LeftOut)
	}
}
