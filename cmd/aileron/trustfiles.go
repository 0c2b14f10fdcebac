package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"

	"github.com/ALRubinger/aileron/ca"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/shims"
)

// bundlePaths are where distributions keep their roots, as crypto/x509 knows
// them.
var bundlePaths = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// boxFiles are what goes into the box before it starts: the session's CA
// wherever some runtime looks for roots, and what tells the agent what it may
// do. All of it is public.
func (s *session) boxFiles(ctx context.Context, engine *sandbox.Engine, image string) ([]sandbox.File, error) {
	root := s.ca.RootPEM()
	var files []sandbox.File
	add := func(path string, data []byte) {
		files = append(files, sandbox.File{Path: path, Mode: 0o644, Data: data})
	}
	own, err := engine.ReadFiles(ctx, image, bundlePaths)
	if err != nil {
		return nil, fmt.Errorf("read the image's trust store: %w", err)
	}
	var system []byte
	for _, path := range bundlePaths {
		if data, ok := own[path]; ok {
			if len(system) == 0 {
				system = data
			}
			add(path, ca.Bundle(data, root))
		}
	}
	if len(system) == 0 { // an image without roots: the host's, so that tools that look there work
		system, _ = ca.SystemBundle()
		add(bundlePaths[0], ca.Bundle(system, root))
	}
	bundle := ca.Bundle(system, root)
	add(boxCA, root)
	add(boxBundle, bundle)
	add("/usr/local/share/ca-certificates/aileron-session.crt", root)
	link, err := ca.HashLink(root)
	if err != nil {
		return nil, err
	}
	add("/etc/ssl/certs/"+link, root)
	java, err := ca.JavaTrustStore(bundle)
	if err != nil {
		return nil, err
	}
	add(boxJava, java)
	block, _ := pem.Decode(root)
	policy, err := json.Marshal(map[string][]string{"CACertificates": {base64.StdEncoding.EncodeToString(block.Bytes)}})
	if err != nil {
		return nil, err
	}
	add("/etc/chromium/policies/managed/aileron.json", policy)
	add("/etc/aileron/tools.txt", shims.ToolsFile(s.grants.connectors))
	return files, nil
}
