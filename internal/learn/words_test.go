package learn

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

const (
	smallLetters = "abcdefghijklmnopqrstuvwxyz"
	base36       = smallLetters + "0123456789"
	base62       = base36 + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// drawFrom returns n texts of characters of an alphabet, the same ones each time.
func drawFrom(alphabet string, length, n int) (all []string) {
	source := rand.New(rand.NewPCG(1, uint64(length)))
	for range n {
		text := make([]byte, length)
		for i := range text {
			text[i] = alphabet[source.IntN(len(alphabet))]
		}
		all = append(all, string(text))
	}
	return all
}

// Of random texts at most so many of 1000 are taken for names, as docs/learning.md has it.
func TestRandomTextsAreSeldomTakenForNames(t *testing.T) {
	for _, c := range []struct {
		alphabet     string
		length, most int
	}{
		{base62, 10, 150}, {base62, 12, 60}, {base62, 16, 30}, {base62, 22, 20}, {smallLetters, 12, 330},
		{smallLetters, 14, 150}, {smallLetters, 16, 60}, {smallLetters, 20, 20}, {base36, 16, 200},
	} {
		missed := 0
		for _, text := range drawFrom(c.alphabet, c.length, 1000) {
			if KindOf(text, []string{"x"}) == Literal {
				missed++
			}
		}
		if missed > c.most {
			t.Errorf("of 1000 texts of %d of %q, %d are literals, want at most %d", c.length, c.alphabet, missed, c.most)
		}
	}
}

// These names of packages, routes, types and resources are close to what is random.
func TestNamesThatLookOddAreNames(t *testing.T) {
	for name := range strings.FieldsSeq("kubernetes-sigs libxml2-dev postgresql-client-15 styled-components " +
		"horizontalpodautoscalers customresourcedefinitions flowschemas mutatingwebhookconfigurations cryptography " +
		"babel-plugin-transform-runtime eslint-plugin-jsx-a11y fastapi sqlalchemy psycopg2-binary grpcio-tools " +
		"acceptEnterpriseAdministratorInvitation getObjectByGUID listPRsForRepo updateIPAllowList XMLHttpRequest " +
		"fetchJSONData OAuthAuthorizationServer BigQueryDataTransfer AWSLambdaFunctionURL iOSAppStoreReceipt " +
		"lightningcss transcriptions subscriptions healthcheck passthrough worksheets blockchain bookshelf " +
		"strengthening rhythmically chrysanthemum WebKitGTK libncursesw6 linux-headers-amd64 python3-setuptools " +
		"graphql-schema node-gyp-build win32-x64-msvc aarch64-unknown-linux-gnu react-dom use-sync-external-store " +
		"workflow_dispatches check-suites branch_protection_rules stargazers contributors organization_secrets") {
		if k := KindOf(name, []string{"x"}); k != Literal && k != Version {
			t.Errorf("%s is of kind %d", name, k)
		}
	}
}

// What one of them does not show, several side by side do: they are of one length, and no names.
func TestSiblingsShowThatTheyVary(t *testing.T) {
	for alphabet, length := range map[string]int{smallLetters: 9, base36: 8, base62: 8} {
		var requests []string
		for _, text := range drawFrom(alphabet, length, 8) {
			requests = append(requests, "POST /boards/"+text+"/cards")
		}
		if got := templates(requests...); !slices.Equal(got, []string{"POST /boards/{board}/cards"}) {
			t.Errorf("%d of %q: %v", length, alphabet, got)
		}
	}
	var requests []string
	for name := range strings.FieldsSeq("settings webhooks branches releases comments assignee projects") { // of 8 letters
		requests = append(requests, "POST /api/"+name)
	}
	if got := templates(requests...); len(got) != len(requests) {
		t.Errorf("words of one length are %v", got)
	}
}

// In plain HTTP, a host passes with every path, unasked, if all that no template can have was packages.
func TestOnlyAnArchivePassesWithEveryPath(t *testing.T) {
	for path, want := range map[string]bool{"/pool/tool_1.0%7erc1_all.deb": true, "/dists/x%7e/Packages.xz": true,
		"/search%7e": false, "/a%7e.deb/x": false} {
		var tree Tree
		for i, p := range []string{path, "/dists/stable/InRelease"} {
			tree.Add(Request{Host: "a.example", Port: 80, Method: "GET", Path: p, Row: fmt.Sprint(i)})
		}
		ops := tree.Operations()
		is, archive := ops[0].AnyPath()
		if is != want || archive != want || (tree.LeftOut == 0) != want {
			t.Errorf("%s: any path: %v, of an archive: %v, %d left out", path, is, archive, tree.LeftOut)
		}
	}
	var alone Tree
	alone.Add(Request{Host: "a.example", Port: 80, Method: "GET", Path: "/search%7e", Row: "1"})
	if is, archive := alone.Operations()[0].AnyPath(); !is || archive {
		t.Errorf("a host with nothing else: any path: %v, of an archive: %v", is, archive)
	}
}
