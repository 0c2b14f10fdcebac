package trust_test

import (
	"fmt"
	"io/fs"
	"path"
	"testing/fstest"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/internal/trust"
)

// The files of an image are any io/fs file system with symbolic links.
func ExampleInstall() {
	session, err := ca.NewSession(ca.Options{Session: "example"})
	if err != nil {
		panic(err)
	}
	image := fstest.MapFS{ // as in Fedora
		"etc/pki/ca-trust/source/anchors": {Mode: fs.ModeDir | 0o755},
		"etc/ssl/certs":                   {Mode: fs.ModeSymlink | 0o777, Data: []byte("../pki/tls/certs")},
		"etc/pki/tls/certs/ca-bundle.crt": {Data: session.RootPEM()},
	}
	installed, err := trust.Install(image, session.RootPEM(), trust.Options{})
	if err != nil {
		panic(err)
	}
	for _, f := range installed.Files {
		if !f.Mode.IsDir() && path.Ext(f.Path) != ".0" { // a hash link, of another name in each session
			fmt.Println(f.Path)
		}
	}
	// Output:
	// /etc/pki/tls/certs/ca-bundle.crt
	// /etc/aileron/proxy/ca.pem
	// /etc/aileron/proxy/bundle.pem
	// /etc/aileron/proxy/trust.p12
	// /etc/pki/ca-trust/source/anchors/aileron-session.crt
	// /etc/chromium/policies/managed/aileron.json
	// /etc/opt/chrome/policies/managed/aileron.json
	// /etc/opt/chrome_for_testing/policies/managed/aileron.json
	// /etc/firefox/policies/policies.json
}
