package spec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/internal/termsafe"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/store"
)

func newSpecValidateCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "List every fault of connector specs, each with its place",
		Long: "List every fault of aileron.connector.v1.json files, manifest.toml files, or\n" +
			"connector directories, whose two files are checked against each other.",
		Example: "  aileron spec validate examples/connectors/*/aileron.connector.v1.json",
		Args:    cli.UsageArgs(cobra.MinimumNArgs(1)),
		RunE:    func(_ *cobra.Command, args []string) error { return validateSpecs(a, args) },
	}
}

// FaultJSON is one fault of `spec validate --json`.
type FaultJSON struct {
	File    string `json:"file"`
	Path    string `json:"path"`
	Message string `json:"message"`
}

func validateSpecs(a *cli.App, names []string) error {
	found := []FaultJSON{}
	for _, name := range names {
		for _, f := range specFaults(name) {
			file := name
			if f.File != "" && filepath.Base(name) != f.File {
				file = filepath.Join(name, f.File)
			}
			found = append(found, FaultJSON{file, f.Path, f.Message})
		}
	}
	if a.JSON {
		if err := a.PrintJSON(found); err != nil {
			return err
		}
	} else {
		for _, f := range found {
			fmt.Fprintln(a.Stdout, termsafe.Line((&spec.Diagnostic{File: f.File, Path: f.Path, Message: f.Message}).Error()))
		}
	}
	switch {
	case len(found) == 1:
		return failure.Input(hint.New(errors.New("found 1 fault"), connectors.SeeConnectors), failure.ReasonConnector)
	case len(found) > 1:
		return failure.Input(hint.New(fmt.Errorf("found %d faults", len(found)), connectors.SeeConnectors),
			failure.ReasonConnector)
	case !a.JSON:
		a.Infof("aileron: no faults in %s", strings.Join(names, ", "))
	}
	return nil
}

// specFaults returns the faults of one file or directory.
func specFaults(name string) []*spec.Diagnostic {
	info, err := os.Stat(name)
	switch {
	case err != nil:
	case info.IsDir():
		_, err = store.Read(name)
	default:
		var data []byte
		if data, err = readSpecFile(name); err != nil {
			break
		}
		if filepath.Ext(name) == ".toml" {
			var m spec.Manifest
			if m, err = spec.ParseManifest(data); err == nil {
				err = m.CheckLogin()
			}
		} else {
			_, err = spec.Parse(data)
		}
	}
	if err == nil {
		return nil
	}
	if faults := spec.Diagnostics(err); len(faults) > 0 {
		return faults
	}
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return []*spec.Diagnostic{{Message: err.Error()}}
}

// readSpecFile returns the content of a file that is not larger than a spec may be.
func readSpecFile(name string) ([]byte, error) {
	if info, err := os.Stat(name); err == nil && info.Size() > spec.MaxSpecSize {
		return nil, &spec.Diagnostic{Message: fmt.Sprintf("it is larger than %d bytes", spec.MaxSpecSize)}
	}
	return os.ReadFile(name)
}
