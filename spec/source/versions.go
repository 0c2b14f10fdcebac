package source

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/spec"
)

// Versions returns the versions of a connector that exist, highest first. Of a forge
// they are its tags, which need neither a token nor the forge's API and its rate
// limits: they are listed as git lists them.
func (c *Client) Versions(ctx context.Context, fqn spec.FQN) ([]string, error) {
	all, err := c.places(fqn)
	if err != nil {
		return nil, err
	}
	for _, at := range all {
		found, err := c.list(ctx, at, fqn)
		if !isMissing(err) || at.scheme == "hub" {
			return found, err
		}
	}
	if c.opts.Credential == nil {
		return nil, (&Error{What: "the versions of " + string(fqn), Host: all[0].base.Host}).noRepository(all, "")
	}
	return c.listPrivate(ctx, all, fqn)
}

// list returns the versions of a connector at a place, highest first.
func (c *Client) list(ctx context.Context, at place, fqn spec.FQN) ([]string, error) {
	what := "the versions of " + string(fqn)
	var found []string
	r := request{what: what, most: maxList}
	if at.scheme == "hub" {
		r.method, r.url, r.header = http.MethodGet, at.at("api/v1", at.repo, "versions"), header("application/json")
		r.read = func(_ *http.Response, body io.Reader) (err error) {
			found, err = readHubVersions(body)
			return err
		}
	} else {
		prefix := "refs/tags/" + at.sub + "v"
		r.method, r.url, r.header = http.MethodPost, at.at(at.repo+".git", "git-upload-pack"), gitHeader()
		r.body = func() io.Reader { return strings.NewReader(listRefs(prefix)) }
		r.read = func(_ *http.Response, body io.Reader) (err error) {
			found, err = readRefs(body, prefix)
			return err
		}
	}
	if err := c.do(ctx, r); err != nil {
		if errors.As(err, new(*Error)) || ctx.Err() != nil {
			return nil, err
		}
		return nil, &Error{What: what, Host: r.url.Host, Kind: NotAnArchive, Detail: "the list is not valid", Err: err}
	}
	return sortedVersions(found), nil
}

// sortedVersions returns what of a list is a version, highest first.
func sortedVersions(found []string) []string {
	found = slices.DeleteFunc(found, func(v string) bool { return !spec.IsVersion(v) })
	slices.SortFunc(found, func(a, b string) int { return spec.CompareVersions(b, a) })
	return slices.Compact(found)
}

// maxList bounds the bytes of a list of versions.
const maxList = 4 << 20

// readHubVersions reads {"versions": [{"version": "1.2.0"}, "1.1.0", …]}.
func readHubVersions(body io.Reader) ([]string, error) {
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var list struct {
		Versions []json.RawMessage `json:"versions"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, errors.New("it is no object with versions")
	}
	var found []string
	for _, entry := range list.Versions {
		var text string
		var object struct {
			Version string `json:"version"`
		}
		switch {
		case json.Unmarshal(entry, &text) == nil:
		case json.Unmarshal(entry, &object) == nil:
			text = object.Version
		default:
			return nil, errors.New("an entry is no version")
		}
		found = append(found, text)
	}
	return found, nil
}

// gitHeader is that of a request of git's protocol, version 2.
func gitHeader() http.Header {
	h := header("application/x-git-upload-pack-result")
	h.Set("Content-Type", "application/x-git-upload-pack-request")
	h.Set("Git-Protocol", "version=2")
	h.Set("User-Agent", "git/aileron")
	return h
}

// listRefs returns the command ls-refs of git's protocol for the refs that begin
// with prefix. Version 2 is stateless over HTTP, and filters on the server: the
// list of a repository with 100 000 pull requests stays short.
func listRefs(prefix string) string {
	return pktLine("command=ls-refs\n") + "0001" + pktLine("ref-prefix "+prefix+"\n") + "0000"
}

// pktLine returns text as a pkt-line of git's protocol.
func pktLine(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// maxReported bounds what is shown of a server's message, in bytes.
const maxReported = 200

// readRefs returns what follows prefix in the names of the refs of a response of
// ls-refs.
func readRefs(body io.Reader, prefix string) ([]string, error) {
	in := bufio.NewReader(body)
	var found []string
	for {
		var digits [4]byte
		if _, err := io.ReadFull(in, digits[:]); err != nil {
			return nil, errors.New("it ends early")
		}
		size, err := strconv.ParseUint(string(digits[:]), 16, 16)
		if err != nil || size > 0 && size < 4 {
			return nil, errors.New("it is not a list of git's protocol, version 2")
		}
		if size == 0 {
			return found, nil
		}
		text := make([]byte, size-4)
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, errors.New("it ends early")
		}
		line := strings.TrimSuffix(string(text), "\n")
		if why, failed := strings.CutPrefix(line, "ERR "); failed {
			return nil, fmt.Errorf("the server reports %q", why[:min(len(why), maxReported)])
		}
		_, name, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, " ") // attributes follow
		if version, ok := strings.CutPrefix(name, prefix); ok {
			found = append(found, version)
		}
	}
}
