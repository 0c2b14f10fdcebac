package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
)

// writeNotices writes the licences of the modules, each whole.
func writeNotices(w io.Writer, modules []module) error {
	rule := strings.Repeat("-", 80)
	if _, err := fmt.Fprintf(w, "aileron contains the following software of others, under their licences.\n"); err != nil {
		return err
	}
	for _, m := range modules {
		for _, t := range m.texts {
			_, err := fmt.Fprintf(w, "\n%s\n%s %s (%s): %s\n%s\n\n%s\n", rule, m.path, m.version, m.licence, t.name, rule,
				strings.TrimRight(t.body, "\n"))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// bom is the part of CycloneDX 1.6 that is written.
type bom struct {
	Format       string      `json:"bomFormat"`
	SpecVersion  string      `json:"specVersion"`
	SerialNumber string      `json:"serialNumber"`
	Version      int         `json:"version"`
	Metadata     metadata    `json:"metadata"`
	Components   []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl"`
	Licences   []licence  `json:"licenses,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type licence struct {
	Expression string `json:"expression"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// writeSBOM writes the modules as a CycloneDX document. It has no time and its serial number is a digest, so that
// two builds of one commit agree.
func writeSBOM(w io.Writer, info *debug.BuildInfo, modules []module) error {
	main := component{Type: "application", Name: info.Main.Path, Version: mainVersion(info)}
	main.Licences = []licence{{"Apache-2.0"}}
	main.PURL = purl(main.Name, main.Version)
	main.Ref = main.PURL
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "vcs.revision":
			main.Properties = append(main.Properties, property{"go:build:" + s.Key, s.Value})
		}
	}
	b := bom{Format: "CycloneDX", SpecVersion: "1.6", Version: 1, Metadata: metadata{main}}
	for _, m := range modules {
		c := component{Type: "library", Ref: purl(m.path, m.version), Name: m.path, Version: m.version,
			PURL: purl(m.path, m.version), Licences: []licence{{m.licence}}}
		if m.sum != "" {
			c.Properties = []property{{"go:sum", m.sum}}
		}
		b.Components = append(b.Components, c)
	}
	content, err := json.Marshal(b)
	if err != nil {
		return err
	}
	b.SerialNumber = serial(content)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(b)
}

// mainVersion returns the version that the linker was given, or else the module's.
func mainVersion(info *debug.BuildInfo) string {
	for _, s := range info.Settings {
		if _, version, ok := strings.Cut(s.Value, "-X main.version="); ok && s.Key == "-ldflags" {
			version, _, _ = strings.Cut(version, " ")
			return "v" + version
		}
	}
	return info.Main.Version
}

func purl(path, version string) string { return "pkg:golang/" + path + "@" + version }

// serial returns a UUID of version 8 (RFC 9562 section 5.8) that depends on the content alone.
func serial(content []byte) string {
	sum := sha256.Sum256(content)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
