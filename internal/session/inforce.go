package session

import (
	"maps"
	"slices"
)

// maxNamed is how many values of a flag session.started names. The number of all of them is in another field then.
const maxNamed = 64

// Sandbox describes the sandbox of a session's command. Its zero value is none.
type Sandbox struct {
	Image, ImageID string // as it was asked for, and what that stood for
	EngineVersion  string // of the engine that Options.Mode names
	Network        string // --sandbox-proxy: on, auto or off
	ReadOnly       bool   // the command cannot change the image's files
	Protect        bool   // nor the project's files that the host would run
	Keep           bool   // its state outlives the sandbox
}

// addTo adds the sandbox to the fields of session.started.
func (b Sandbox) addTo(fields map[string]any) {
	for name, text := range map[string]string{
		"image": b.Image, "image_id": b.ImageID, "engine_version": b.EngineVersion, "sandbox_proxy": b.Network,
	} {
		if text != "" {
			fields[name] = text
		}
	}
	for name, set := range map[string]bool{"read_only": b.ReadOnly, "protect": b.Protect, "keep": b.Keep} {
		if set {
			fields[name] = true
		}
	}
}

// addTo adds to the fields of session.started what the session uses that others do not.
func (o Options) addTo(fields map[string]any) {
	if o.Detached {
		fields["detached"] = true
	}
	if o.Connectors != nil {
		names := make([]string, 0, len(o.Connectors))
		for _, fqn := range o.Connectors {
			names = append(names, string(fqn))
		}
		fields["connectors"] = names
		addNamed(fields, "connectors", names)
	}
	for name, values := range map[string][]string{
		"allow": o.Allow, "mounts": o.Shared.Mounts, "env": o.Shared.Variables, "ports": o.Shared.Ports,
		"tunnel": o.Config.Tunnel, "resolve": o.resolved(), "project_widens": o.Project.Widens,
	} {
		addNamed(fields, name, values)
	}
	for name, text := range map[string]string{
		"aileron": o.Version, "project_file": o.Project.Hash, "upstream_ca": o.UpstreamCA,
	} {
		if text != "" {
			fields[name] = text
		}
	}
	if proxy := o.Upstream.Proxy; proxy != nil {
		fields["upstream_proxy"] = proxy.Host // its URL may have a password
	}
}

// addNamed adds values to fields: at most [maxNamed] of them, and the number of all if there are more.
func addNamed(fields map[string]any, name string, values []string) {
	if len(values) > 0 {
		fields[name] = values[:min(len(values), maxNamed)]
	}
	if len(values) > maxNamed {
		fields[name+"_total"] = len(values)
	}
}

// resolved returns the hosts that are reached at an address of the user's, as HOST:PORT:ADDR.
func (o Options) resolved() []string {
	var all []string
	for _, host := range slices.Sorted(maps.Keys(o.Upstream.Resolve)) {
		all = append(all, host+":"+o.Upstream.Resolve[host].String())
	}
	return all
}
