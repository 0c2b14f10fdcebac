package trust_test

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/imagefs"
	"github.com/ALRubinger/aileron/internal/trust"
)

// An image whose files could not be used, or would lead somewhere else, is
// refused with the file and what to do.
func TestAnImageThatStandsInTheWayIsRefused(t *testing.T) {
	t.Parallel()
	const (
		bundle = "/etc/ssl/certs/ca-certificates.crt"
		policy = "/etc/chromium/policies/managed/aileron.json"
		anchor = "/usr/local/share/ca-certificates/aileron-session.crt"
	)
	for _, c := range []struct {
		name  string
		image []string
		file  string
		cause string
	}{
		{"a directory for a bundle", []string{"etc/ssl/certs/ca-certificates.crt/"}, bundle, "not a file"},
		{"a file for a directory", []string{"etc/ssl = text"}, bundle, "/etc/ssl is not a directory"},
		{"links in a circle", []string{"etc/ssl/certs -> certs"}, bundle, "circle"},
		{"no PEM", []string{"etc/ssl/cert.pem = these are no roots"}, "/etc/ssl/cert.pem", "not PEM"},
		{"cut off", []string{"etc/ssl/cert.pem = CUT"}, "/etc/ssl/cert.pem", "cut off"},
		{"above 8 MiB", []string{"etc/ssl/cert.pem = HUGE"}, "/etc/ssl/cert.pem", "larger than 8 MiB"},
		{"a link into the project", []string{"etc/aileron -> /home/agent/workspace/x"},
			trust.CAFile, "/home/agent/workspace/x/proxy/ca.pem"},
		{"a link that climbs into the project", []string{"etc/aileron -> ../../../home/agent/x"},
			trust.CAFile, "/home/agent/x/proxy/ca.pem"},
		{"a link of a parent into the project", []string{"etc/debian_version = 12", "usr/local -> /home/agent"},
			anchor, "/home/agent/share/ca-certificates/aileron-session.crt"},
		{"a link to a device's directory", []string{"etc/chromium -> /dev/shm"}, policy, "/dev/shm/policies"},
		{"a directory for a policy", []string{"etc/chromium/policies/managed/aileron.json/x = y"}, policy, "not a file"},
		{"a device for the CA", []string{"etc/aileron/proxy/ca.pem = DEVICE"}, trust.CAFile, "not a file"},
		{"a directory for the list of tools", []string{"etc/aileron/tools.txt/"}, "/etc/aileron/tools.txt", "not a file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			image := w.image(c.image...)
			for _, f := range image {
				switch string(f.Data) {
				case "CUT":
					f.Data = append(bytes.Clone(w.own), w.host[:len(w.host)-40]...)
				case "HUGE":
					f.Data = bytes.Repeat(w.own, 8<<20/len(w.own)+1)
				case "DEVICE":
					f.Mode, f.Data = fs.ModeDevice|0o600, nil
				}
			}
			got, err := trust.Install(image, w.session, w.options)
			var refused *trust.Error
			if !errors.As(err, &refused) || refused.File != c.file || !strings.Contains(refused.Cause.Error(), c.cause) {
				t.Fatalf("Install = %d files, %v; want that %s is refused: %s", len(got.Files), err, c.file, c.cause)
			}
			if refused.ErrorClass() != "invalid_request" || refused.ErrorReason() != "preflight_failed" {
				t.Errorf("class %s, reason %s", refused.ErrorClass(), refused.ErrorReason())
			}
			if h := hint.Of(err); !strings.Contains(h, "rebuild the image") || !strings.Contains(h, c.file) {
				t.Errorf("hint %q, want one that names %s", h, c.file)
			}
		})
	}
}

// A link that climbs out of the image ends at its root.
func TestALinkOutOfTheImageStaysInIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	image := w.image("etc/ssl/certs/ca-certificates.crt -> ../../../../../../srv/roots.pem", "srv/roots.pem")
	if put := w.install(t, image); put["/srv/roots.pem"] != string(w.own)+string(w.session) {
		t.Errorf("put: %q", put)
	}
}

// What an image's files fail with, such as the end of its engine, is passed on.
func TestAFailureToReadIsPassedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gone := errors.New("the engine is gone")
	image := imagefs.New(imagefs.Tree{}, imagefs.Source{Lstat: func(name string) (imagefs.Node, error) {
		if name == "usr" {
			return imagefs.Node{}, gone
		}
		return imagefs.Node{}, fs.ErrNotExist
	}})
	w.options.Extra = []trust.File{{Path: "/usr/tools.txt"}}
	_, err := trust.Install(image, w.session, w.options)
	if blamed, ok := errors.AsType[*trust.Error](err); !ok || !errors.Is(blamed.Cause, gone) {
		t.Errorf("Install: %v, want the failure", err)
	}
}
