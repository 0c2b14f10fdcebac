package devcontainer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/regular"
	"github.com/ALRubinger/aileron/sandbox/dockerfile"
)

// Feature is a feature of a configuration. What its install.sh adds is a layer of the image.
type Feature struct {
	Ref      string `json:"feature"` // as the file names it, or a feature that depends on it
	Version  string `json:"version,omitempty"`
	Manifest string `json:"manifest,omitempty"` // the digest that its registry knows it by
	Digest   string `json:"digest,omitempty"`   // of its files; "" for one that was not fetched
	// Options are the variables of install.sh, sorted.
	Options []Variable `json:"options"`
	// Env are variables of the image, sorted. ${NAME} in a value is a variable of the image below.
	Env []Variable `json:"container_env"`

	Install []byte `json:"-"` // install.sh
	Files   []File `json:"-"`
}

// The files of a feature that have a meaning.
const (
	featureMetadata = "devcontainer-feature.json"
	featureInstall  = "install.sh"
)

// lockFile has the digests that the versions of features stood for when a person locked them.
const lockFile = "devcontainer-lock.json"

// useFeatures puts features in force that were fetched, or notes that they have to be.
func (c *composer) useFeatures(name string, value any) {
	object, ok := value.(map[string]any)
	switch {
	case !ok:
		c.mistyped(name, "an object of features")
		return
	case len(object) == 0:
		return
	case c.plan.Tier == TierBYO: // which was read before
		c.warn(name, "the image of customizations.aileron takes their place")
		return
	case len(object) > maxFeatures:
		c.refuse(name, fmt.Sprintf("it has more than %d", maxFeatures), "remove some, or move them into the image")
		return
	case c.Unbuilt:
		return
	}
	request, ok := c.featureRequest(object)
	if !ok || !c.orderFeatures(request) {
		return
	}
	c.plan.Requested = request
	var set *FeatureSet
	if c.Fetched != nil {
		var err error
		if set, err = c.Fetched(request); err != nil {
			c.refuse(name, err.Error(), hint.Of(err))
			return
		}
	}
	if set == nil {
		c.plan.Unfetched = true
		for _, ref := range slices.Sorted(maps.Keys(object)) {
			c.plan.Features = append(c.plan.Features, Feature{Ref: ref, Options: []Variable{}, Env: []Variable{}})
		}
		return
	}
	var used []FetchedFeature
	for _, f := range set.Features {
		if f.Asked {
			f.Value = object[f.Ref]
		}
		// That another one depends on it with the same options changes nothing.
		if !slices.ContainsFunc(used, func(o FetchedFeature) bool {
			return o.Ref == f.Ref && reflect.DeepEqual(o.Value, f.Value)
		}) {
			used = append(used, f)
			c.useFeature(f)
		}
	}
}

// useOrder warns about an order of no features. With features it is read with them.
func (c *composer) useOrder(name string, _ any) {
	if object, ok := c.doc.root["features"].(map[string]any); !ok || len(object) == 0 {
		c.warn(name, "there are no features")
	}
}

// orderFeatures sets the order of a request. Only names that the file has among its features are in it: the reference
// implementation fetches each, and a value may have a variable of this host. It reports false after a refusal.
func (c *composer) orderFeatures(r *FeatureRequest) bool {
	const property = "overrideFeatureInstallOrder"
	value := c.doc.root[property]
	if value == nil {
		return true
	}
	names, ok := c.texts(property, value)
	for _, name := range names {
		known := false
		for ref := range r.Features {
			known = known || ref == name || !isLocalFeature(ref) && featureVersion().ReplaceAllString(ref, "") == name
		}
		if !known {
			c.warn(property, strconv.Quote(name)+" has no effect: features has no such name")
			continue
		}
		r.Order = append(r.Order, name)
	}
	return ok
}

// featureVersion is what follows the name of a feature in a registry.
var featureVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[:@][^/]*$`)
})

// featureRequest returns what is to be fetched. It reports false after a refusal.
func (c *composer) featureRequest(object map[string]any) (*FeatureRequest, bool) {
	r := &FeatureRequest{Features: object}
	if err := checkKeys(object); err != nil {
		c.refuse("features", err.Error(), "remove it")
		return r, false
	}
	lock := path.Join(path.Dir(c.File), lockFile)
	if path.Dir(c.File) == "." {
		lock = "." + lockFile
	}
	var err error
	if r.Lock, err = regular.ReadIn(c.Root, lock, maxFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.refuse("features", fmt.Sprintf("read %s: %v", lock, err), "correct the file, or remove it")
		return r, false
	}
	size, count, refused := 0, 0, len(c.plan.Refusals)
	for _, ref := range slices.Sorted(maps.Keys(object)) {
		property := "features." + ref
		if !printable(ref) || ref == "" {
			c.refuse("features", fmt.Sprintf("%q is no name of a feature", ref), "correct the name")
			continue
		}
		if !isLocalFeature(ref) {
			if !featureName().MatchString(ref) {
				c.refuse(property, "it is no name of a feature",
					"write REGISTRY/NAMESPACE/NAME:VERSION, an https:// address, or ./NAME")
			}
			continue
		}
		dir := path.Join(path.Dir(c.File), ref)
		if !strings.HasPrefix(dir, directory+"/") {
			c.refuse(property, ref+" is not in "+directory,
				"move it there: the reference implementation reads it from nowhere else")
			continue
		}
		files, err := readTree(c.ctx, c.Root, dir)
		if err != nil {
			c.refuse(property, err.Error(), "correct the path; it is relative to "+path.Dir(c.File))
			continue
		}
		l, err := localFeature(ref, dir, files)
		if err != nil {
			c.refuse(property, err.Error(), "correct the feature, or leave it out")
			continue
		}
		r.Local = append(r.Local, l)
		for _, f := range files {
			size += len(f.Data)
		}
		if count += len(files); size > maxContextBytes || count > maxContextFiles {
			c.refuse(property, fmt.Sprintf("with it local features have more than %d MiB, or %d files", maxContextBytes>>20,
				maxContextFiles), "remove what install.sh does not need")
			break
		}
	}
	if len(c.plan.Refusals) > refused {
		return r, false
	}
	err = r.linkLocal(path.Dir(c.File))
	if err == nil {
		_, err = r.handed()
	}
	if err != nil {
		c.refuse("features", err.Error(), cmp.Or(hint.Of(err), "correct the feature, or leave it out"))
	}
	return r, len(c.plan.Refusals) == refused
}

// featureName is what the reference implementation takes for a feature that is fetched: no other text reaches it.
var featureName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(https://)?[A-Za-z0-9][A-Za-z0-9._:@%/-]*$`)
})

// isLocalFeature reports whether a name is that of a directory of the project.
func isLocalFeature(ref string) bool {
	return strings.HasPrefix(ref, "./") || strings.HasPrefix(ref, "../")
}

// leaveOut is what to do about a feature that asks for more than a sandbox gives.
const leaveOut = "leave the feature out, and install what it brings in a Dockerfile"

// useFeature puts one feature in force. What it asks for besides its layer is treated as the same property of the
// configuration is.
func (c *composer) useFeature(fetched FetchedFeature) {
	property := "features." + Word(fetched.Ref)
	c.doc.lines[property] = max(c.line("features."+fetched.Ref), c.line("features"))
	f := Feature{Ref: fetched.Ref, Manifest: fetched.Manifest, Digest: "sha256:" + digestOf(fetched.Files),
		Files: fetched.Files, Env: []Variable{}}
	metadata, ok := c.readFeature(property, &f)
	if !ok {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		at, value := property+"."+key, metadata[key]
		c.doc.lines[at] = c.line(property)
		if value == nil {
			continue
		}
		switch key {
		case "id", "name", "description", "documentationURL", "licenseURL", "keywords", "$schema", "installsAfter",
			"dependsOn", "legacyIds", "currentId", "options":
		case "version":
			f.Version, _ = c.text(at, value)
		case "deprecated":
			if value == true {
				c.warn(at, "its publisher no longer maintains it")
			}
		case "privileged":
			refuseUnless(false, "it breaks the seal of the sandbox", leaveOut)(c, at, value)
		case "capAdd":
			refuseList("a sandbox has no capabilities", leaveOut)(c, at, value)
		case "securityOpt":
			refuseList("a sandbox has the seccomp profile of aileron", leaveOut)(c, at, value)
		case "init":
			c.useInit(at, value)
		case "mounts":
			c.useMounts(at, value)
		case "containerEnv":
			f.Env = c.featureEnv(at, value)
		case "entrypoint":
			c.warn(at, "it does not run: the sandbox runs the agent")
		case "customizations":
			c.warn(at, "what a feature brings for other programs is not in force")
		default:
			if slices.Contains(phases(), key) {
				command := c.command(at, value)
				command.Phase, command.Feature = key, f.Ref
				if len(command.Parts) > 0 {
					c.featureCommands = append(c.featureCommands, command)
				}
				continue
			}
			c.warn(at, "there is no such property of a feature")
		}
	}
	f.Options = c.featureOptions(property, metadata["options"], fetched.Value)
	c.plan.Features = append(c.plan.Features, f)
}

// readFeature returns the metadata of a feature, with its variables replaced but for those of containerEnv, and sets
// its install.sh.
func (c *composer) readFeature(property string, f *Feature) (map[string]any, bool) {
	var data []byte
	for _, file := range f.Files {
		switch file.Path {
		case featureMetadata:
			data = file.Data
		case featureInstall:
			f.Install = file.Data
		}
	}
	if len(data) > maxFile || len(f.Install) > dockerfile.Max {
		c.refuse(property, fmt.Sprintf("its metadata has more than %d KiB, or its install.sh more than %d KiB, and a person "+
			"is to read it", maxFile>>10, dockerfile.Max>>10), leaveOut)
		return nil, false
	}
	if data == nil || f.Install == nil {
		c.refuse(property, "it has no "+featureMetadata+", or no "+featureInstall, "correct the feature, or leave it out")
		return nil, false
	}
	doc, err := parse(data)
	if err != nil {
		c.refuse(property, fmt.Sprintf("read its %s: %v", featureMetadata, err), "correct the feature, or leave it out")
		return nil, false
	}
	env := doc.root["containerEnv"]
	delete(doc.root, "containerEnv")
	root, err := replace(doc.root, c.bounded(c.containerVariables(c.localVariables())))
	if err != nil {
		c.refuse(property, err.Error(), "correct the feature, or leave it out")
		return nil, false
	}
	metadata := root.(map[string]any)
	if env != nil {
		metadata["containerEnv"] = env
	}
	return metadata, true
}

// featureOptions returns the variables of install.sh: the options of the metadata with what the configuration gives, as
// the reference implementation makes them.
func (c *composer) featureOptions(property string, defined, given any) []Variable {
	values := map[string]any{}
	options, _ := defined.(map[string]any)
	for name, option := range options {
		if o, ok := option.(map[string]any); ok && o["default"] != nil {
			values[name] = o["default"]
		}
	}
	switch v := given.(type) {
	case nil:
	case map[string]any:
		maps.Copy(values, v)
	default:
		if _, ok := options["version"]; ok {
			values["version"] = v
		}
	}
	all := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch v := values[name].(type) {
		case string, bool, json.Number, float64:
			text := fmt.Sprint(v)
			if strings.ContainsRune(text, 0) {
				c.refuse(property, fmt.Sprintf("the option %q has a character that no variable has", name), "correct the option")
			}
			all[optionVariable(name)] = text
		case nil:
		default:
			c.refuse(property, fmt.Sprintf("the option %q is no string, number, or true or false", name), "correct the option")
		}
	}
	return sorted(all)
}

var (
	notOfVariable = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[^A-Za-z0-9_]`)
	})
	notFirst = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[0-9_]+`)
	})
)

// optionVariable returns the variable of install.sh for an option, as the format describes it.
func optionVariable(name string) string {
	return strings.ToUpper(notFirst().ReplaceAllString(notOfVariable().ReplaceAllString(name, "_"), "_"))
}

var (
	variableName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	})
	// imageVariable is all that may follow a $ in a variable of an image.
	imageVariable = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\$(\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*)`)
	})
)

// featureEnv returns the variables of the image that a feature sets. They become a line of a Dockerfile, so each value
// has characters that can be seen, and names variables of the image alone.
func (c *composer) featureEnv(property string, value any) []Variable {
	object, ok := value.(map[string]any)
	if !ok {
		c.mistyped(property, "an object of variables")
		return []Variable{}
	}
	all := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		text, ok := object[name].(string)
		switch {
		case !variableName().MatchString(name):
			c.refuse(property, strconv.Quote(name)+" is no name of a variable", "correct the feature, or leave it out")
		case !ok || !printable(text):
			c.refuse(property, fmt.Sprintf("the variable %s is no string of characters that can be seen", name),
				"correct the feature, or leave it out")
		case strings.Contains(imageVariable().ReplaceAllString(text, ""), "$"):
			c.refuse(property, fmt.Sprintf("the variable %s has a $ that names no variable of the image", name),
				"correct the feature, or leave it out")
		default:
			all[name] = text
		}
	}
	return sorted(all)
}
