package devcontainer

import (
	"fmt"
	"maps"
	"slices"
)

// useCustomizations puts customizations.aileron in force. Those of other programs are not for us.
func (c *composer) useCustomizations(name string, value any) {
	object, ok := value.(map[string]any)
	if !ok {
		c.mistyped(name, "an object")
		return
	}
	for _, program := range slices.Sorted(maps.Keys(object)) {
		property := name + "." + program
		if program != "aileron" {
			c.warn(property, "it is for another program")
			continue
		}
		ours, ok := object[program].(map[string]any)
		if !ok {
			c.mistyped(property, "an object")
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(ours)) {
			if ours[key] != nil {
				c.useOwn(property+"."+key, key, ours[key])
			}
		}
	}
}

// useOwn puts one of our own keys in force.
func (c *composer) useOwn(property, key string, value any) {
	p := c.plan
	switch key {
	case "image":
		if image, ok := c.imageName(property, value); ok {
			p.Tier, p.Image, p.Build = TierBYO, image, nil
		}
	case "mediation":
		if mode, ok := c.text(property, value); ok && mode != "default" {
			c.refuse(property, fmt.Sprintf("a project cannot set it to %q", mode),
				`write "default"; how a session mediates is a person's choice: --sandbox-proxy`)
		}
	case "approval_surface":
		if _, ok := c.text(property, value); ok && value != "both" {
			c.warn(property, "requests that wait are decided with aileron approval, wherever that runs")
		}
	case "egress":
		switch mode, ok := c.text(property, value); {
		case ok && mode != "deny" && mode != "passthrough":
			c.refuse(property, fmt.Sprintf("it is %q", mode), "write deny or passthrough")
		case ok:
			p.Egress = mode
		}
	case "connectors":
		if names, ok := c.texts(property, value); ok {
			p.Connectors = append([]string{}, names...)
		}
	case "packages":
		if names, ok := c.texts(property, value); ok {
			p.Packages = names
		}
	default:
		c.warn(property, "there is no such key")
	}
}
