// Package source fetches published connectors from the forges and hubs that
// their names stand for, and lists the versions that are there.
//
// [New] makes a [Client], [ParseRef] reads FQN@VERSION, and [Client.Fetch]
// downloads that connector's archive:
//
//	client, err := source.New(source.Options{Dial: dial})
//	if err != nil {
//		return err
//	}
//	ref, err := source.ParseRef("github://acme/tracker@1.2.0")
//	if err != nil {
//		return err
//	}
//	err = client.Fetch(ctx, ref, source.Asset, file, limit)
//
// A version is a tag: v1.2.0, or path/v1.2.0 for a connector at a path of its
// repository. The archive is the asset aileron.tar.gz of the release of that tag.
// A name of GitLab may be a project in groups below its group: which part of it is the
// project is found out, as a group has no two things of one path. What arrives is not
// trusted: the caller checks the archive, its names and its hash.
//
// No token is sent, unless [Options] has a Credential: then what is not public is asked
// for again, of the forge's API. The credential goes to that host alone, and to none that
// it redirects to.
//
// source.go knows the places, fetch.go downloads, versions.go lists, private.go asks for
// what is not public, and transport.go sends each request, repeats it, and says why it
// failed.
package source

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ALRubinger/aileron/spec"
)

// Asset is the name of a connector's archive among the assets of a release.
const Asset = "aileron.tar.gz"

// Options configures a [Client].
type Options struct {
	// Dial connects to "host:port", and refuses addresses that must not be
	// reached: redirects lead where a publisher wants.
	Dial  func(ctx context.Context, hostport string) (net.Conn, error)
	Roots *x509.CertPool // nil: the host's
	// Denied reports whether an error of Dial is about an address that must not be
	// reached. nil: no error is.
	Denied func(err error) bool

	GitHub string // https:// base URL; "": https://github.com
	GitLab string // "": https://gitlab.com
	Hub    string // "": there is none

	// Idle is how long a source may take to connect, to begin its response, and
	// for each further 16 KiB of it. 0 is a minute.
	Idle time.Duration

	// Credential returns the credential with which the API of a forge is asked for what is
	// not public. nil: no forge is.
	Credential func(ctx context.Context, api API) (Credential, error)

	Progress func(done, total int64) // total is -1 if it is not known; nil: not reported
	Notice   func(text string)       // a request is about to be repeated; nil: not reported
}

// Client downloads connectors. Its methods are safe for concurrent use.
type Client struct {
	opts  Options
	bases map[string]*url.URL // by scheme
	http  *http.Client
}

// New returns a client. It returns an error for a base URL that is not https.
func New(opts Options) (*Client, error) {
	if opts.Idle == 0 {
		opts.Idle = time.Minute
	}
	c := &Client{opts: opts, bases: map[string]*url.URL{}}
	for scheme, text := range map[string]string{
		"github": withDefault(opts.GitHub, "https://github.com"),
		"gitlab": withDefault(opts.GitLab, "https://gitlab.com"),
		"hub":    opts.Hub,
	} {
		if text == "" {
			continue
		}
		base, err := ParseBase(text)
		if err != nil {
			return nil, fmt.Errorf("read the base URL of %s://: %w", scheme, err)
		}
		c.bases[scheme] = base
	}
	c.http = &http.Client{
		CheckRedirect: checkRedirect,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, hostport string) (net.Conn, error) {
				return opts.Dial(ctx, hostport)
			},
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: opts.Roots},
			TLSHandshakeTimeout:    opts.Idle,
			MaxResponseHeaderBytes: 64 << 10,
			DisableCompression:     true, // an archive is compressed already
			MaxIdleConnsPerHost:    1,
			IdleConnTimeout:        opts.Idle,
		},
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func withDefault(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// ParseBase reads the base URL of a source: https, a host, and perhaps a path.
func ParseBase(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL", text)
	case u.Scheme != "https" || u.Host == "" || u.Hostname() == "":
		return nil, fmt.Errorf("%q is not https://HOST", text)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "":
		return nil, fmt.Errorf("%s://%s has more than a host and a path", u.Scheme, u.Host) // it may hold a password
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	return u, nil
}

// Ref is one version of a connector.
type Ref struct {
	FQN     spec.FQN
	Version string
}

// ParseRef reads FQN@VERSION with a full version.
func ParseRef(text string) (Ref, error) {
	name, version, versioned := strings.Cut(text, "@")
	fqn, err := spec.ParseFQN(name)
	if err != nil {
		return Ref{}, err
	}
	if !versioned {
		return Ref{}, fmt.Errorf("read the connector %q: name its version, as in %s@1.2.0", text, fqn)
	}
	if !spec.IsVersion(version) {
		return Ref{}, fmt.Errorf("read the connector %q: the version %q is not MAJOR.MINOR.PATCH", text, version)
	}
	return Ref{fqn, version}, nil
}

// String returns FQN@VERSION.
func (r Ref) String() string { return string(r.FQN) + "@" + r.Version }

// place is where a connector is published.
type place struct {
	scheme string
	base   *url.URL
	repo   string // owner/repository; of a hub, the whole path
	sub    string // the path in the repository, with a slash at its end, or ""
}

// maxGroups bounds how many beginnings of a name may be its project.
const maxGroups = 8

// places returns where a connector may be published, at least one place, in the order in which they are asked: a name
// of GitLab with more than two parts can be a project in a group below the owner's.
func (c *Client) places(fqn spec.FQN) ([]place, error) {
	first, err := c.place(fqn)
	if err != nil || first.scheme != "gitlab" || first.sub == "" {
		return []place{first}, err
	}
	all := []place{first}
	rest := strings.Split(strings.TrimSuffix(first.sub, "/"), "/")
	for i := range min(len(rest), maxGroups) {
		next := first
		next.repo += "/" + strings.Join(rest[:i+1], "/")
		if next.sub = strings.Join(rest[i+1:], "/"); next.sub != "" {
			next.sub += "/"
		}
		all = append(all, next)
	}
	return all, nil
}

// place returns where a connector is published, if the first two parts of its name are the repository.
func (c *Client) place(fqn spec.FQN) (place, error) {
	scheme, path, _ := strings.Cut(string(fqn), "://")
	base, ok := c.bases[scheme]
	switch {
	case ok:
	case scheme == "hub":
		return place{}, noHub(fqn)
	default:
		return place{}, &Error{What: string(fqn), Kind: UnknownScheme,
			Detail: fmt.Sprintf("connectors whose name begins with %s:// are not published anywhere", scheme)}
	}
	p := place{scheme: scheme, base: base, repo: path}
	if scheme == "hub" {
		return p, nil
	}
	parts := strings.SplitN(path, "/", 3)
	p.repo = parts[0] + "/" + parts[1]
	if len(parts) == 3 {
		p.sub = parts[2] + "/"
	}
	return p, nil
}

// tag returns the tag of a version. A hub has none.
func (p place) tag(version string) string { return p.sub + "v" + version }

// asset returns the URL of an asset of a version.
func (p place) asset(version, name string) *url.URL {
	switch p.scheme {
	case "github":
		return p.at(p.repo, "releases/download", escape(p.tag(version)), name)
	case "gitlab":
		return p.at(p.repo, "-/releases", escape(p.tag(version)), "downloads", name)
	}
	return p.at("api/v1", p.repo, escape(version), name)
}

// at returns the URL of a path below the base, in which the parts are escaped
// already.
func (p place) at(parts ...string) *url.URL {
	u := *p.base
	u.RawPath = u.EscapedPath() + "/" + strings.Join(parts, "/")
	u.Path, _ = url.PathUnescape(u.RawPath)
	return &u
}

// escape returns text as one segment of a path, as forges write the tags in their
// own links: with %2F for a slash, and %2B for a plus, which some servers read
// as a space.
func escape(text string) string {
	return strings.ReplaceAll(url.PathEscape(text), "+", "%2B")
}
