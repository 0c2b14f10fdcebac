package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
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
	at, err := c.place(ref.FQN)
	if err != nil {
		return err
	}
	err = c.do(ctx, request{
		what: ref.String(), method: http.MethodGet, url: at.asset(ref.Version, asset), header: header("*/*"), most: most,
		read: func(res *http.Response, body io.Reader) error { return c.store(ref, file, res, body) },
	})
	var failed *Error
	switch {
	case !errors.As(err, &failed):
	case failed.Kind == NotFound:
		return c.explain(ctx, at, ref, asset, failed)
	case failed.Kind == NotAnArchive && at.scheme != "hub":
		// GitLab redirects to a page to sign in, for what is not public and for what is not there.
		if _, listErr := c.Versions(ctx, ref.FQN); isMissing(listErr) {
			return failed.noRepository(at, asset)
		}
	}
	return err
}

// isMissing reports whether a list of versions could not be fetched because there is no such repository, or none that
// is public.
func isMissing(err error) bool {
	var failed *Error
	return errors.As(err, &failed) && (failed.Kind == NotFound || failed.Kind == Refused)
}

// noRepository returns e as the error for a repository of a forge that is not there, or not public.
func (e *Error) noRepository(at place, asset string) error {
	e.Kind, e.Detail = NotFound, fmt.Sprintf("there is no public repository %s", at.repo)
	if at.scheme == "gitlab" && at.sub != "" {
		return hint.New(e, "the first two parts of a gitlab:// name are the project: one in a subgroup cannot be a source, "+
			"and none that is not public; get its %s with your own rights, and name that file", asset)
	}
	return hint.New(e, "check the name; a repository that is not public cannot be a source, as no token is sent: get its "+
		"%s with your own rights, and name that file", asset)
}

func header(accept string) http.Header {
	return http.Header{"Accept": {accept}, "User-Agent": {"aileron"}}
}

// store writes a response to a file.
func (c *Client) store(ref Ref, file File, res *http.Response, body io.Reader) error {
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "text/html" {
		e := &Error{What: ref.String(), Host: res.Request.URL.Host, Kind: NotAnArchive, Status: res.StatusCode,
			Detail: "the response is a web page, not an archive; private repositories respond with one"}
		return e.withHint()
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("write the archive of %s: %w", ref, err)
	}
	if err := file.Truncate(0); err != nil {
		return fmt.Errorf("write the archive of %s: %w", ref, err)
	}
	out := io.Writer(file)
	if c.opts.Progress != nil {
		out = &progressWriter{w: file, total: res.ContentLength, report: c.opts.Progress}
	}
	if _, err := io.CopyBuffer(onlyWriter{out}, body, make([]byte, 32<<10)); err != nil {
		return fmt.Errorf("write the archive of %s: %w", ref, err)
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

// explain returns the error for a version that is not there, with what is.
func (c *Client) explain(ctx context.Context, at place, ref Ref, asset string, missing *Error) error {
	versions, err := c.Versions(ctx, ref.FQN)
	switch {
	case isMissing(err) && at.scheme == "hub":
		missing.Detail = "there is no such connector"
	case isMissing(err):
		return missing.noRepository(at, asset)
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
