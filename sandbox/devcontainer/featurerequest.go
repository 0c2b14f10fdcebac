package devcontainer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ALRubinger/aileron/internal/hint"
)

// FeatureRequest is what a configuration asks for of features before they are fetched.
type FeatureRequest struct {
	Features map[string]any // options by the name of the feature, with variables replaced
	Order    []string       // overrideFeatureInstallOrder
	Local    []LocalFeature // those that lie in the project, sorted by their names
	Lock     []byte         // devcontainer-lock.json; nil is none
}

// LocalFeature is a feature that lies in the project.
type LocalFeature struct {
	Ref     string
	Files   []File         // with paths relative to its directory
	Depends map[string]any // dependsOn: options by the name of the feature
	After   []string       // installsAfter

	dir string // relative to the project
}

// maxFeatures bounds the features of a configuration with those that they depend on.
const maxFeatures = 64

// Key returns a digest of the request. Options are no part of it: what is fetched does not depend on them.
func (r *FeatureRequest) Key() string {
	names, err := json.Marshal(slices.Sorted(maps.Keys(r.Features)))
	order, err2 := json.Marshal(r.Order)
	if err != nil || err2 != nil { // lists of strings
		return ""
	}
	parts := [][]byte{names, order, r.Lock}
	for _, l := range r.Local {
		parts = append(parts, []byte(l.Ref), []byte(digestOf(l.Files)))
	}
	return digest(parts...)
}

// Remote is a feature that is fetched from another machine.
type Remote struct {
	Ref    string
	Locked string // the name with the digest of the lock file, by which it is fetched; "" for none
	By     string // the local feature whose metadata names it; "" is the configuration
}

// Remote returns the features that a fetch looks up on other machines before it knows any metadata that lies there:
// those of the configuration, and those that local features depend on or are installed after.
func (r *FeatureRequest) Remote() (all []Remote, err error) {
	fetched, err := r.fetched()
	if err != nil {
		return nil, err
	}
	add := func(f Remote) {
		if !isLocalFeature(f.Ref) {
			all = append(all, f)
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(fetched)) {
		f := Remote{Ref: ref}
		if name := fetched[ref]; name != ref {
			f.Locked = name
		}
		add(f)
	}
	for _, l := range r.Local {
		named := slices.Concat(slices.Sorted(maps.Keys(l.Depends)), l.After)
		slices.Sort(named)
		for _, ref := range slices.Compact(named) {
			add(Remote{Ref: ref, By: l.Ref})
		}
	}
	return all, nil
}

// lockedName is a feature in a registry by its digest.
var lockedName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z0-9][a-z0-9._:/-]*@sha256:[0-9a-f]{64}$`)
})

// fetched returns the names by which the features of the configuration are fetched: one that the lock file has by its
// digest, and a local one by a name of our own.
func (r *FeatureRequest) fetched() (map[string]string, error) {
	var lock struct {
		Features map[string]struct {
			Resolved string `json:"resolved"`
		} `json:"features"`
	}
	if len(bytes.TrimSpace(r.Lock)) > 0 {
		if err := json.Unmarshal(r.Lock, &lock); err != nil {
			return nil, hint.New(fmt.Errorf("read %s: %w", lockFile, err), "correct the file, or remove it")
		}
	}
	names := map[string]string{}
	for ref := range r.Features {
		names[ref] = ref
		if l, ok := lock.Features[ref]; ok && !isLocalFeature(ref) && !strings.HasPrefix(ref, "https://") {
			resource, _, _ := strings.Cut(strings.ToLower(l.Resolved), "@")
			if strings.ToLower(featureVersion().ReplaceAllString(ref, "")) != resource ||
				!lockedName().MatchString(l.Resolved) {
				return nil, hint.New(fmt.Errorf("read %s: it resolves %s to %q", lockFile, ref, l.Resolved),
					"correct the file, or remove it")
			}
			names[ref] = l.Resolved
		}
	}
	for i, l := range r.Local {
		names[l.Ref] = fmt.Sprintf("./f%02d", i) // in the order in which those of equal priority are installed
	}
	return names, nil
}

// handed returns what the reference implementation reads, by paths relative to a project: a configuration with the
// names of the features, and the metadata of the local ones.
//
// All of it is written anew of what was understood here. A text of the project may have another meaning for that
// program: it takes a key "__proto__" for the object's own keys, and replaces variables once more.
func (r *FeatureRequest) handed() (map[string]any, error) {
	names, err := r.fetched()
	if err != nil {
		return nil, err
	}
	known := func(ref string) string {
		if name, ok := names[ref]; ok && isLocalFeature(ref) {
			return name
		}
		return ref
	}
	features := map[string]any{}
	for ref := range r.Features {
		features[names[ref]] = map[string]any{}
	}
	config := map[string]any{"image": "scratch", "features": features}
	if r.Order != nil {
		config["overrideFeatureInstallOrder"] = renamed(r.Order, known)
	}
	docs := map[string]any{path.Join(directory, "devcontainer.json"): config}
	for _, l := range r.Local {
		name := path.Base(names[l.Ref])
		depends := map[string]any{}
		for ref, options := range l.Depends {
			depends[known(ref)] = options
		}
		docs[path.Join(directory, name, featureMetadata)] = map[string]any{"id": name, "version": "1.0.0",
			"dependsOn": depends, "installsAfter": renamed(l.After, known)}
	}
	for _, at := range slices.Sorted(maps.Keys(docs)) {
		if err := errors.Join(checkKeys(docs[at]), checkTexts(docs[at])); err != nil {
			return nil, fmt.Errorf("hand features over: %w", err)
		}
	}
	return docs, nil
}

func renamed(refs []string, name func(string) string) []any {
	list := []any{}
	for _, ref := range refs {
		list = append(list, name(ref))
	}
	return list
}

// checkKeys returns an error for a key that stands for something of each object in JavaScript.
func checkKeys(value any) error {
	return eachText(value, func(text string, isKey bool) error {
		if isKey && slices.Contains([]string{"__proto__", "constructor", "prototype"}, text) {
			return fmt.Errorf("it has the key %q, which stands for something else in JavaScript", text)
		}
		return nil
	})
}

// checkTexts returns an error for a text with a variable, which would be replaced.
func checkTexts(value any) error {
	return eachText(value, func(text string, _ bool) error {
		if strings.Contains(text, "${") {
			return fmt.Errorf("%q has a variable, and there may be none", text)
		}
		return nil
	})
}

// eachText calls check for each string and each key of a value.
func eachText(value any, check func(text string, isKey bool) error) error {
	switch v := value.(type) {
	case string:
		return check(v, false)
	case []any:
		for _, item := range v {
			if err := eachText(item, check); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := check(key, true); err != nil {
				return err
			}
			if err := eachText(v[key], check); err != nil {
				return err
			}
		}
	}
	return nil
}

// localFeature reads what the metadata of a local feature says about others.
func localFeature(ref, dir string, files []File) (l LocalFeature, err error) {
	l = LocalFeature{Ref: ref, Files: files, dir: dir, Depends: map[string]any{}}
	at := slices.IndexFunc(files, func(f File) bool { return f.Path == featureMetadata && f.Mode.IsRegular() })
	if at < 0 {
		return l, errors.New("it has no " + featureMetadata)
	}
	if len(files[at].Data) > maxFile {
		return l, fmt.Errorf("its metadata has more than %d KiB", maxFile>>10)
	}
	doc, err := parse(files[at].Data)
	if err == nil {
		err = checkKeys(doc.root)
	}
	if err != nil {
		return l, fmt.Errorf("read its %s: %w", featureMetadata, err)
	}
	depends, ok := doc.root["dependsOn"].(map[string]any)
	if !ok && doc.root["dependsOn"] != nil {
		return l, errors.New("its dependsOn is no object of features")
	}
	after, ok := doc.root["installsAfter"].([]any)
	if !ok && doc.root["installsAfter"] != nil {
		return l, errors.New("its installsAfter is no list of features")
	}
	for _, item := range after {
		name, ok := item.(string)
		if !ok {
			return l, errors.New("its installsAfter is no list of features")
		}
		l.After = append(l.After, name)
	}
	if err := checkTexts(depends); err != nil {
		return l, fmt.Errorf("read its dependsOn: %w", err)
	}
	maps.Copy(l.Depends, depends)
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(depends)), l.After) {
		if !isLocalFeature(name) && !featureName().MatchString(name) {
			return l, fmt.Errorf("it names %s, which is no name of a feature", strconv.Quote(name))
		}
	}
	return l, nil
}

// linkLocal renames the local features that others name as the configuration names them. from is the
// directory of the configuration.
func (r *FeatureRequest) linkLocal(from string) error {
	find := func(name string) (string, bool) {
		if !isLocalFeature(name) {
			return name, true
		}
		for _, l := range r.Local {
			if l.dir == path.Join(from, name) {
				return l.Ref, true
			}
		}
		return "", false
	}
	for i := range r.Local {
		l := &r.Local[i]
		depends := map[string]any{}
		for name, options := range l.Depends {
			ref, ok := find(name)
			if !ok {
				return hint.New(fmt.Errorf("%s depends on %q, which is not among the features", l.Ref, name),
					"add it to features")
			}
			depends[ref] = options
		}
		l.Depends = depends
		var after []string
		for _, name := range l.After {
			if ref, ok := find(name); ok { // one that is not installed changes no order
				after = append(after, ref)
			}
		}
		l.After = after
	}
	return nil
}
