package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ALRubinger/aileron/internal/hint"
)

// File is where an archive is written to. [os.File] implements it.
type File interface {
	io.WriteSeeker
	Truncate(size int64) error
}

// Fetch writes an asset of a version, such as [Asset], to the beginning of file. It
// has at most most bytes. A response that ends early is requested again, from the start. If the
// version does not exist, the error lists those that do. It is an [*Error] unless ctx
// was canceled or file cannot be written.
func (c *Client) Fetch(ctx context.Context, ref Ref, asset string, file File, most int64) error {
	all, err := c.places(ref.FQN)
	if err != nil {
		return err
	}
	save := func(res *http.Response, body io.Reader) error { return c.store(ref.String(), file, res, body) }
	for _, at := range all {
		err = c.do(ctx, request{what: ref.String(), method: http.MethodGet, url: at.asset(ref.Version, asset),
			header: header("*/*"), most: most, read: save})
		var failed *Error
		if !errors.As(err, &failed) || failed.Kind != NotFound && (failed.Kind != NotAnArchive || at.scheme == "hub") {
			return err
		}
		// GitLab redirects to a page to sign in, for what is not public and for what is not there.
		versions, listErr := c.list(ctx, at, ref.FQN)
		switch {
		case !isMissing(listErr) && failed.Kind == NotFound:
			return failed.explained(at, ref, asset, versions, listErr)
		case !isMissing(listErr):
			return err
		case at.scheme == "hub":
			failed.Detail = "there is no such connector"
			return failed.withHint()
		}
	}
	if c.opts.Credential == nil {
		return (&Error{What: ref.String(), Host: all[0].base.Host}).noRepository(all, asset)
	}
	return c.fetchPrivate(ctx, all, ref, asset, most, save)
}

// FetchURL writes what is at an https URL to the beginning of file: at most most bytes. Its name in errors is what.
func (c *Client) FetchURL(ctx context.Context, u *url.URL, what string, file File, most int64) error {
	return c.do(ctx, request{what: what, method: http.MethodGet, url: u, header: header("*/*"), most: most,
		read: func(res *http.Response, body io.Reader) error { return c.store(what, file, res, body) }})
}

// ParseURL reads the https URL of an archive, and returns it with its name in messages, which has no query: that may be
// a signature.
func ParseURL(text string) (u *url.URL, name string, err error) {
	u, err = url.Parse(text)
	switch {
	case err != nil:
		return nil, "", errors.New("read the URL of the archive: it is not a URL")
	case u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "":
		return nil, "", errors.New("read the URL of the archive: it is not https://HOST/PATH")
	case u.User != nil:
		return nil, "", errors.New("read the URL of the archive: it has a user name, which is not sent")
	}
	u.Fragment, u.RawFragment = "", ""
	shown := *u
	shown.RawQuery, shown.ForceQuery = "", false
	return u, shown.String(), nil
}

// isMissing reports whether a list of versions could not be fetched because there is no such repository, or none that
// is public.
func isMissing(err error) bool {
	var failed *Error
	return errors.As(err, &failed) && (failed.Kind == NotFound || failed.Kind == Refused &&
		(failed.Status == http.StatusUnauthorized || failed.Status == http.StatusForbidden))
}

// noRepository returns e as the error for a repository of a forge that is not there, or not public.
func (e *Error) noRepository(all []place, asset string) error {
	var names []string
	for _, at := range all {
		names = append(names, at.repo)
	}
	e.Kind, e.Detail = NotFound, "there is no public repository "+strings.Join(names, " or ")
	if asset == "" {
		return hint.New(e, "check the name; for one that is not public pass --private, which uses your binding of the forge")
	}
	return hint.New(e, "check the name; for one that is not public pass --private, which uses your binding of the forge, "+
		"or get its %s with your own rights, and name that file", asset)
}

func header(accept string) http.Header {
	return http.Header{"Accept": {accept}, "User-Agent": {"aileron"}}
}

// store writes a response to a file.
func (c *Client) store(what string, file File, res *http.Response, body io.Reader) error {
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "text/html" {
		e := &Error{What: what, Host: res.Request.URL.Host, Kind: NotAnArchive, Status: res.StatusCode,
			Detail: "the response is a web page, not an archive; private repositories respond with one"}
		return e.withHint()
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("write the archive of %s: %w", what, err)
	}
	if err := file.Truncate(0); err != nil {
		return fmt.Errorf("write the archive of %s: %w", what, err)
	}
	out := io.Writer(file)
	if c.opts.Progress != nil {
		out = &progressWriter{w: file, total: res.ContentLength, report: c.opts.Progress}
	}
	if _, err := io.CopyBuffer(onlyWriter{out}, body, make([]byte, 32<<10)); err != nil {
		return fmt.Errorf("write the archive of %s: %w", what, err)
	}
	return nil
}

// onlyWriter hides ReadFrom, which would not use the buffer.
type onlyWriter struct{ io.Writer }

// progressWriter reports how much has been written.
type progressWriter struct {
	w           io.Writer
	done, total int64
	report      func(done, total int64)
}

// Write implements io.Writer.
func (p *progressWriter) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.done += int64(n)
	p.report(p.done, p.total)
	return n, err
}

// explained returns the error for a version that is not there, with what is, which is not known if err is not nil.
func (missing *Error) explained(at place, ref Ref, asset string, versions []string, err error) error {
	switch {
	case err != nil:
		return missing.withHint()
	case slices.Contains(versions, ref.Version) && at.scheme != "hub":
		missing.Detail = fmt.Sprintf("the tag %s exists, but its release has no %s", at.tag(ref.Version), asset)
		missing.Versions = slices.DeleteFunc(versions, func(v string) bool { return v == ref.Version })
	default:
		missing.Detail = "there is no such version"
		if at.scheme != "hub" {
			missing.Detail = fmt.Sprintf("there is no release with the tag %s", at.tag(ref.Version))
		}
		missing.Versions = versions
		if len(versions) == 0 {
			missing.Detail += fmt.Sprintf(", and no tag of a version (%s)", strings.TrimSuffix(at.tag("1.2.0"), "1.2.0")+"…")
		}
	}
	return missing.withHint()
}
