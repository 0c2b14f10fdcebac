package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/spec"
)

// API is the API of a forge, which is asked for what is not public.
type API struct {
	Forge string // github or gitlab
	Host  string // that the credential goes to, with its port if that is not 443
}

// Credential is a request field that proves who asks. It does not print.
type Credential struct{ Field, value string }

// NewCredential returns the credential of a request field.
func NewCredential(field, value string) Credential { return Credential{field, value} }

// Format writes a placeholder, for every verb.
func (Credential) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[credential]")) }

// private is what is asked of the API of a forge, with a credential.
type private struct {
	c    *Client
	api  API
	base *url.URL // of the API
	cred Credential
}

// privately returns what asks the API of the forge of a place.
func (c *Client) privately(ctx context.Context, at place) (*private, error) {
	p := &private{c: c, base: at.at("api/v4")}
	if at.scheme == "github" {
		p.base = at.at("api/v3") // of an installation of GitHub Enterprise
		if at.base.Host == "github.com" {
			p.base = &url.URL{Scheme: "https", Host: "api.github.com"}
		}
	}
	p.api = API{Forge: at.scheme, Host: p.base.Host}
	var err error
	p.cred, err = c.opts.Credential(ctx, p.api)
	return p, err
}

// at returns the URL of a path of the API, whose parts are escaped already.
func (p *private) at(parts ...string) *url.URL { return place{base: p.base}.at(parts...) }

// get sends a request with the credential.
func (p *private) get(ctx context.Context, what string, u *url.URL, accept string, most int64,
	read func(*http.Response, io.Reader) error,
) error {
	h := header(accept)
	h.Set(p.cred.Field, p.cred.value)
	return p.c.do(ctx, request{what: what, method: http.MethodGet, url: u, header: h, most: most, read: read,
		secret: p.cred.Field})
}

// getJSON reads a response of the API into v.
func (p *private) getJSON(ctx context.Context, what string, u *url.URL, v any) error {
	return p.get(ctx, what, u, "application/json", maxList, func(res *http.Response, body io.Reader) error {
		if err := json.NewDecoder(body).Decode(v); err != nil {
			return &Error{What: what, Host: res.Request.URL.Host, Kind: NotAnArchive, Detail: "the response is not valid"}
		}
		return nil
	})
}

// fetchPrivate fetches an asset of a release that is not public, from the first place that has it.
func (c *Client) fetchPrivate(ctx context.Context, all []place, ref Ref, asset string, most int64,
	save func(*http.Response, io.Reader) error,
) error {
	p, err := c.privately(ctx, all[0])
	if err != nil {
		return err
	}
	for _, at := range all {
		var u *url.URL
		if u, err = p.asset(ctx, at, ref, asset); err == nil {
			err = p.get(ctx, ref.String(), u, "application/octet-stream", most, save)
		}
		if !isMissing(err) {
			return err
		}
	}
	return p.refused(all, ref.String(), err)
}

// asset returns the URL of an asset in the API.
func (p *private) asset(ctx context.Context, at place, ref Ref, asset string) (*url.URL, error) {
	tag := escape(at.tag(ref.Version))
	if at.scheme == "gitlab" {
		return p.at("projects", escape(at.repo), "releases", tag, "downloads", asset), nil
	}
	var release struct {
		Assets []struct {
			ID   int64  `json:"id"`
			Name string `json:"name"`
		} `json:"assets"`
	}
	if err := p.getJSON(ctx, ref.String(), p.at("repos", at.repo, "releases/tags", tag), &release); err != nil {
		return nil, err
	}
	for _, a := range release.Assets {
		if a.Name == asset {
			return p.at("repos", at.repo, "releases/assets", strconv.FormatInt(a.ID, 10)), nil
		}
	}
	e := &Error{What: ref.String(), Host: p.api.Host, Kind: NotFound,
		Detail: fmt.Sprintf("the release of the tag %s has no %s", at.tag(ref.Version), asset)}
	return nil, e.withHint()
}

// maxPages bounds the pages of a list of tags.
const maxPages = 10

// listPrivate returns the versions of a connector that is not public, highest first.
func (c *Client) listPrivate(ctx context.Context, all []place, fqn spec.FQN) ([]string, error) {
	p, err := c.privately(ctx, all[0])
	if err != nil {
		return nil, err
	}
	what := "the versions of " + string(fqn)
	for _, at := range all {
		var found []string
		if found, err = p.tags(ctx, what, at); !isMissing(err) {
			return sortedVersions(found), err
		}
	}
	return nil, p.refused(all, what, err)
}

// tags returns what follows the beginning of the tags of a connector.
func (p *private) tags(ctx context.Context, what string, at place) (found []string, err error) {
	prefix := at.tag("")
	if at.scheme == "github" {
		var refs []struct {
			Ref string `json:"ref"`
		}
		err := p.getJSON(ctx, what, p.at("repos", at.repo, "git/matching-refs/tags", escape(prefix)), &refs)
		for _, r := range refs {
			found = append(found, strings.TrimPrefix(r.Ref, "refs/tags/"+prefix))
		}
		return found, err
	}
	const each = 100
	for page := range maxPages {
		var tags []struct {
			Name string `json:"name"`
		}
		u := p.at("projects", escape(at.repo), "repository/tags")
		u.RawQuery = url.Values{"search": {"^" + prefix}, "per_page": {strconv.Itoa(each)},
			"page": {strconv.Itoa(page + 1)}}.Encode()
		if err := p.getJSON(ctx, what, u, &tags); err != nil {
			return nil, err
		}
		for _, t := range tags {
			if version, ok := strings.CutPrefix(t.Name, prefix); ok {
				found = append(found, version)
			}
		}
		if len(tags) < each {
			break
		}
	}
	return found, nil
}

// refused returns the error for what the API does not have for the credential either.
func (p *private) refused(all []place, what string, err error) error {
	var failed *Error
	if !errors.As(err, &failed) {
		return err
	}
	var names []string
	for _, at := range all {
		names = append(names, at.repo)
	}
	e := &Error{What: what, Host: failed.Host, Kind: failed.Kind, Status: failed.Status,
		Detail: fmt.Sprintf("there is no release of it in %s, or your credential may not read it (status %d)",
			strings.Join(names, " or "), failed.Status)}
	return hint.New(e, "check the name, the version, and what the token of your binding may read")
}
