// Package recipes has the images that the suites run boxes of, and builds
// them. A suite asks for its images with [Need]; scripts/test builds them
// before the tests with [Store.Ensure], so that no build is a part of a test's
// time-out. The tag of an image is a digest of all that it is built from.
package recipes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/ALRubinger/aileron/e2e/harness"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/agents"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

//go:embed testdata
var files embed.FS

// Image is an image of the suites.
type Image struct {
	Ref string

	// make builds the image in an engine's store, and returns what the build
	// printed.
	make func(ctx context.Context, s *Store, engine string) ([]byte, error)
	// needs are images that it is built from.
	needs []Image
	// native is an image that each engine builds for itself; others are built
	// by Podman and handed to Docker.
	native bool
	// handed is an image that only Docker runs: Podman's copy is removed.
	handed bool
}

// Base is aileron's own base image.
func Base() Image {
	base := sandbox.BaseImage()
	return Image{Ref: base.Ref, native: true, make: ensure(base)}
}

// Toolbox is the layer that the images of all agents share.
func Toolbox() Image {
	img := sandbox.ToolboxImage()
	return Image{Ref: img.Ref, needs: []Image{Base()}, make: ensure(img)}
}

// Kubectl is the toolbox with Debian's kubectl.
func Kubectl() Image { return withPackages(sandbox.ToolboxImage(), Toolbox(), "kubernetes-client") }

// withPackages is an image of aileron's own with packages of Debian.
func withPackages(img sandbox.Image, below Image, packages ...string) Image {
	img, err := sandbox.CustomImage(img, packages, nil)
	if err != nil {
		panic(err) // they are names of packages
	}
	return Image{Ref: img.Ref, needs: []Image{below}, make: ensure(img)}
}

// Agent is the image of an agent that sandbox/agents knows.
func Agent(name string) Image {
	agent, ok := agents.Find(name)
	if !ok {
		panic("recipes: there is no agent " + name)
	}
	img := sandbox.AgentImage(name, agent.Recipe)
	return Image{Ref: img.Ref, needs: []Image{Toolbox()}, make: ensure(img)}
}

// Golang is Claude Code's image with Debian's Go.
func Golang() Image {
	claude, _ := agents.Find("claude")
	return withPackages(sandbox.AgentImage("claude", claude.Recipe), Agent("claude"), "golang-go")
}

// ensure builds an image of aileron's own, as aileron does.
func ensure(img sandbox.Image) func(context.Context, *Store, string) ([]byte, error) {
	return func(ctx context.Context, _ *Store, kind string) ([]byte, error) {
		e, err := sandbox.Find(ctx, kind, engine.Patience{})
		if err != nil {
			return nil, err
		}
		defer e.Close()
		var said strings.Builder
		_, err = e.EnsureImage(ctx, img, "auto", &said)
		return []byte(said.String()), err
	}
}

// Clients are the images of e2e/matrix, by the names of their recipes: image,
// browsers, few.
func Clients(name string) Image {
	dir := path.Join("testdata", name)
	sum := sha256.New()
	walk(dir, func(name string, data []byte) {
		fmt.Fprintln(sum, name)
		sum.Write(data)
	})
	ref := "localhost/aileron-matrix:" + name + "-" + tag(sum.Sum(nil))
	return Image{Ref: ref, handed: name == "few", make: func(ctx context.Context, s *Store, _ string) ([]byte, error) {
		in, err := contextOf(s.dir, dir)
		if err != nil {
			return nil, err
		}
		if err := addRoots(in); err != nil {
			return nil, err
		}
		return s.build(ctx, ref, "host", in)
	}}
}

// Services is the image of e2e/catalog: the clients of the matrix, and more.
func Services() Image { return onClients("services") }

// HAR is the image of e2e/har: readers of HAR files on top of the clients of the
// matrix.
func HAR() Image { return onClients("har") }

// Google is an image of e2e/oauth: Google's library for Node on top of the clients of the matrix.
func Google() Image { return onClients("google") }

// onClients returns an image that is built on top of the clients of the matrix.
func onClients(name string) Image {
	from := Clients("image")
	dir := path.Join("testdata", name)
	recipe, err := files.ReadFile(path.Join(dir, "Dockerfile"))
	if err != nil {
		panic(err) // it is embedded
	}
	recipe = bytes.ReplaceAll(recipe, []byte("CLIENTS"), []byte(from.Ref))
	sum := sha256.Sum256(recipe)
	ref := "localhost/aileron-matrix:" + name + "-" + tag(sum[:])
	return Image{Ref: ref, needs: []Image{from}, make: func(ctx context.Context, s *Store, _ string) ([]byte, error) {
		in, err := contextOf(s.dir, dir)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(in, "Dockerfile"), recipe, 0o600); err != nil {
			return nil, err
		}
		if err := addRoots(in); err != nil {
			return nil, err
		}
		return s.build(ctx, ref, "host", in)
	}}
}

// addRoots adds this host's roots to what an image is built from: of a network
// that inspects TLS they have one of its own.
func addRoots(in string) error {
	roots, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	if err != nil {
		return fmt.Errorf("take this host's roots to build the image with: %w", err)
	}
	return os.WriteFile(filepath.Join(in, "roots.pem"), roots, 0o600)
}

// parts is what the images of e2e/images are put together from.
func parts() Image {
	recipe, err := files.ReadFile("testdata/parts/Dockerfile")
	if err != nil {
		panic(err) // it is embedded
	}
	sum := sha256.Sum256(recipe)
	ref := kindsPrefix + "parts:" + tag(sum[:])
	return Image{Ref: ref, make: func(ctx context.Context, s *Store, _ string) ([]byte, error) {
		in, err := contextOf(s.dir, "testdata/parts")
		if err != nil {
			return nil, err
		}
		return s.build(ctx, ref, "host", in)
	}}
}

func tag(sum []byte) string { return hex.EncodeToString(sum)[:12] }

// walk calls f with each file below an embedded directory, in their order.
func walk(dir string, f func(name string, data []byte)) {
	err := fs.WalkDir(files, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		f(strings.TrimPrefix(name, dir+"/"), data)
		return err
	})
	if err != nil {
		panic(err) // it is embedded
	}
}

// contextOf writes an embedded directory to a new one below dir.
func contextOf(dir, recipe string) (string, error) {
	to, err := os.MkdirTemp(dir, "context-")
	if err != nil {
		return "", err
	}
	from, err := fs.Sub(files, recipe)
	if err != nil {
		return "", err
	}
	return to, os.CopyFS(to, from)
}

// client builds testdata/get, the client of e2e/images, into dir.
func client(dir string) error {
	return harness.Build(dir, map[string]string{"get": "github.com/ALRubinger/aileron/e2e/recipes/testdata/get"})
}
