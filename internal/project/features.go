package project

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ALRubinger/aileron/internal/config"
	"github.com/ALRubinger/aileron/internal/durable"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/regular"
	"github.com/ALRubinger/aileron/sandbox"
	"github.com/ALRubinger/aileron/sandbox/devcontainer"
	"github.com/ALRubinger/aileron/sandbox/engine"
)

// features keeps what was fetched for the features of devcontainers. A sandbox does not see it. What a tag of a
// registry stands for is looked up once: from then on, the same request has the same files.
type features struct{ home string }

const (
	maxKept     = 128 << 20 // bytes of what was fetched for one request, as they are kept
	maxRequests = 32        // whose features are kept
)

func (f features) dir() string { return filepath.Join(f.home, "cache", "features") }

func (f features) file(r *devcontainer.FeatureRequest) string {
	return filepath.Join(f.dir(), r.Key()+".json")
}

// kept returns what was fetched for a request, or nil.
func (f features) kept(r *devcontainer.FeatureRequest) (*devcontainer.FeatureSet, error) {
	data, err := regular.Read(f.file(r), maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // it was not fetched
	}
	if err != nil {
		return nil, fmt.Errorf("read fetched features: %w", err)
	}
	set := &devcontainer.FeatureSet{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(set); err != nil {
		return nil, fmt.Errorf("read fetched features %s: %w", f.file(r), err)
	}
	return set, nil
}

// keep keeps what was fetched, and forgets what is older than the last 32 of these.
func (f features) keep(r *devcontainer.FeatureRequest, set *devcontainer.FeatureSet) error {
	data, err := json.Marshal(set)
	if err == nil {
		err = durable.Replace(f.file(r), data)
	}
	if err != nil {
		return fmt.Errorf("keep fetched features: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(f.dir(), "*.json"))
	if err != nil || len(files) <= maxRequests {
		return err
	}
	age := func(name string) int64 {
		info, err := os.Lstat(name)
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(age(a), age(b)) })
	for _, name := range files[:len(files)-maxRequests] {
		_ = os.Remove(name)
	}
	return nil
}

// fetchFeatures fetches the features of a plan that were not fetched yet, and returns the plan with them, and what a
// person has agreed to before: what is fetched from other machines. Without the reference implementation it is an
// error.
func (a *Asker) fetchFeatures(ctx context.Context, u *Use, plan *devcontainer.Plan, dir, home string) (
	*devcontainer.Plan, []Widening, error,
) {
	r := plan.Requested
	if !plan.Unfetched {
		return plan, nil, nil
	}
	cli, err := devcontainer.FindCLI(dir)
	if err != nil {
		return nil, nil, devcontainerFault(plan, err)
	}
	d := &Use{Trust: u.Trust, File: &config.Project{Path: filepath.Join(dir, plan.File), Hash: plan.Digest}}
	if err := d.useFetch(r, cli.Path); err != nil {
		return nil, nil, devcontainerFault(plan, err)
	}
	if len(d.Widens) > 0 {
		d.readsOfHost(plan)
	}
	if err := a.agreeToProject(home, d); err != nil {
		return nil, nil, err
	}
	f := features{home}
	if err := os.MkdirAll(f.dir(), 0o700); err != nil {
		return nil, nil, fmt.Errorf("fetch features: %w", err)
	}
	a.Infof("aileron: fetching the features of %s with %s", devcontainer.Word(plan.File), cli.Path)
	err = a.Interruptible(ctx, func(ctx context.Context) error {
		set, err := cli.Fetch(ctx, f.dir(), r)
		if err == nil {
			err = f.keep(r, set)
		}
		return err
	})
	if err != nil {
		return nil, nil, devcontainerFault(plan, err)
	}
	plan, err = composeDevcontainer(ctx, dir, home, devcontainer.Input{File: plan.File})
	if err == nil && plan.Unfetched {
		err = hint.New(fmt.Errorf("use %s: its features have changed while they were fetched", plan.File), "start again")
	}
	return plan, d.Widens, err
}

// useFetch puts in force what a fetch by the program at the path cli asks other machines for.
func (u *Use) useFetch(r *devcontainer.FeatureRequest, cli string) error {
	all, err := r.Remote()
	if err != nil || len(all) == 0 {
		return err
	}
	for _, f := range all {
		what := "fetch the feature " + strconv.Quote(f.Ref)
		if f.Locked != "" {
			what += ", as " + strconv.Quote(f.Locked)
		}
		if f.By != "" {
			what += ", which " + strconv.Quote(f.By) + " names"
		}
		u.widenAs("fetch a feature on this host", what+", on this host, with its network and without a credential, by "+
			strconv.Quote(cli))
	}
	u.widenAs("fetch a feature on this host", "fetch what these depend on or are installed after, from any machine that "+
		"their publishers name: that is not known before")
	return nil
}

// useFeaturesOf puts in force what features add to the image.
func (u *Use) useFeaturesOf(p *devcontainer.Plan) error {
	for _, f := range p.Features {
		what := "install the feature " + strconv.Quote(f.Ref) + " " + strconv.Quote(f.Version) + " (" +
			cmp.Or(f.Manifest, f.Digest) + ") in the image, outside of the sandbox: its install.sh, of " +
			strconv.Itoa(len(f.Install)) + " bytes beside " + hint.Plural(otherFiles(f), "other file") +
			", runs as root of a container, with the network of the engine's machine, " +
			"without mediation and without a row in the audit log"
		u.InForce = append(u.InForce, "the feature "+devcontainer.Word(f.Ref))
		u.Widens = append(u.Widens, Widening{What: what, Value: optionsText(f.Options), Text: f.Install,
			Brief: "build an image outside of the sandbox"})
		for _, v := range f.Env {
			if err := checkVariable(v.Name, v.Value); err != nil {
				return fmt.Errorf("the feature %s: %w", devcontainer.Word(f.Ref), err)
			}
			u.Widens = append(u.Widens, Widening{What: "set the variable " + v.Name + " of the image",
				Value: " to " + strconv.Quote(v.Value)})
		}
	}
	return nil
}

// otherFiles returns how many files a feature has beside its install.sh.
func otherFiles(f devcontainer.Feature) (n int) {
	for _, file := range f.Files {
		if !file.Mode.IsDir() && file.Path != "install.sh" {
			n++
		}
	}
	return n
}

// optionsText returns the options of a feature, for people.
func optionsText(options []devcontainer.Variable) string {
	var all []string
	for _, v := range options {
		all = append(all, v.Name+"="+strconv.Quote(v.Value))
	}
	if len(all) == 0 {
		return ""
	}
	return ", with " + strings.Join(all, " ")
}

// withFeatures returns an image with the features of a plan on it.
func withFeatures(p *devcontainer.Plan, image sandbox.Image) sandbox.Image {
	if len(p.Features) == 0 {
		return image
	}
	return sandbox.FeaturesImage(image, sandbox.Features{Digest: p.FeatureDigest(),
		Recipe: func(user string) ([]byte, []engine.ContextFile, error) {
			file, files, err := p.FeatureRecipe(user)
			var context []engine.ContextFile
			for _, f := range files {
				context = append(context, engine.ContextFile(f))
			}
			return file, context, err
		}})
}
