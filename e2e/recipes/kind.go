package recipes

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const kindsPrefix = "localhost/aileron-images/"

// Kinds are the images of e2e/images.
func Kinds() []Image {
	var all []Image
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, Kind(name))
	}
	return all
}

// Kind is an image of e2e/images, by its name.
func Kind(name string) Image {
	recipe, ok := kinds[name]
	if !ok {
		panic("recipes: there is no kind of image " + name)
	}
	from := tools()
	recipe = strings.ReplaceAll(recipe, "PARTS", from.Ref)
	var flags []string
	if name == "foreign" {
		flags = []string{"--platform", "linux/" + Foreign()}
	}
	img := ofClient(name, recipe, flags...)
	img.needs = []Image{from}
	return img
}

// tools is parts with the client: one layer for all kinds that have it.
func tools() Image {
	from := parts()
	img := ofClient("tools", "FROM "+from.Ref+"\nCOPY get /usr/bin/get\n")
	img.needs = []Image{from}
	return img
}

// ofClient is an image that is built in kindContext.
func ofClient(name, recipe string, flags ...string) Image {
	sum := sha256.New()
	fmt.Fprintln(sum, recipe, flags, runtime.Version(), OwnRoot)
	walk("testdata/get", func(_ string, data []byte) { sum.Write(data) })
	ref := kindsPrefix + name + ":" + tag(sum.Sum(nil))
	return Image{Ref: ref, make: func(ctx context.Context, s *Store, _ string) ([]byte, error) {
		in, err := s.kindContext()
		if err != nil {
			return nil, err
		}
		file := filepath.Join(s.dir, "Dockerfile."+name)
		if err := os.WriteFile(file, []byte(recipe), 0o600); err != nil {
			return nil, err
		}
		return s.build(ctx, ref, "none", in, append(flags, "-f", file)...)
	}}
}

// Foreign is an architecture that this machine is not.
func Foreign() string {
	if runtime.GOARCH == "arm64" {
		return "amd64"
	}
	return "arm64"
}

// kindContext is the directory that all kinds are built in: the client, and a
// Java's trust store.
func (s *Store) kindContext() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := filepath.Join(s.dir, "kinds")
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	making, err := os.MkdirTemp(s.dir, "kinds-")
	if err != nil {
		return "", err
	}
	if err := client(making); err != nil {
		return "", err
	}
	store, err := cacerts()
	if err != nil {
		return "", fmt.Errorf("make a Java's trust store: %w", err)
	}
	if err := os.WriteFile(filepath.Join(making, "cacerts"), store, 0o600); err != nil {
		return "", err
	}
	return dir, os.Rename(making, dir)
}
