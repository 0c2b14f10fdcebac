package devcontainer_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
	"github.com/ALRubinger/aileron/sandbox/devcontainer"
)

var refresh = flag.String("refresh", "", "the path of a devcontainer CLI that is asked for all answers anew")

const references = "testdata/reference.json"

// reference is a configuration with the answer of the reference implementation, @devcontainers/cli 0.89.0:
//
//	npm install @devcontainers/cli@0.89.0
//	go test ./sandbox/devcontainer -run Reference -refresh "$PWD/node_modules/.bin/devcontainer"
type reference struct {
	Name  string            `json:"name"`
	Files map[string]string `json:"files"`
	Use   string            `json:"use,omitempty"` // the file that is named, as by --config
	Env   map[string]string `json:"env,omitempty"`
	// Ours is in our error, where we refuse what the reference accepts, or refuses too.
	Ours   string          `json:"ours,omitempty"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// theProject stands for the directory of the project in an answer.
const theProject = "/theproject/web"

// answer is what the reference prints.
type answer struct {
	Configuration map[string]any `json:"configuration"`
	Workspace     *struct {
		Folder string `json:"workspaceFolder"`
		Mount  string `json:"workspaceMount"`
	} `json:"workspace"`
}

func TestConfigurationsAreReadAsTheReferenceDoes(t *testing.T) {
	var all []reference
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(references))(t), &all))
	if len(all) < 60 {
		t.Errorf("%d configurations, want 60", len(all))
	}
	for i := range all {
		c := &all[i]
		dir, root := project(t, c.Files)
		if *refresh != "" {
			c.ask(t, dir)
		}
		t.Run(c.Name, func(t *testing.T) { c.compare(t, dir, root) })
	}
	if *refresh != "" {
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		must.Do(t, e.Encode(all))
		must.Do(t, os.WriteFile(references, out.Bytes(), 0o644))
	}
}

// compare holds our reading to the answer.
func (c *reference) compare(t *testing.T, dir string, root *os.Root) {
	file, err := devcontainer.Choose(must.Get(devcontainer.Find(root))(t), "")
	if c.Use != "" {
		file, err = c.Use, nil
	}
	var got []byte
	var plan *devcontainer.Plan
	if err == nil {
		got, plan, err = devcontainer.Configuration(devcontainer.Input{Root: root, Dir: dir, File: file,
			Getenv: func(name string) (string, bool) { v, ok := c.Env[name]; return v, ok }})
	}
	if c.Ours != "" {
		text := ""
		if err != nil {
			text = err.Error()
		} else if len(plan.Refusals) > 0 {
			text = plan.Refusals[0].String()
		}
		if !strings.Contains(text, c.Ours) {
			t.Errorf("our error is %q, want %q", text, c.Ours)
		}
		return
	}
	if err != nil || c.Error != "" {
		t.Fatalf("our error is %v, and that of the reference %q", err, c.Error)
	}
	var want answer
	must.Do(t, json.Unmarshal(c.Answer, &want))
	delete(want.Configuration, "configFilePath")
	// The reference knows it when there is a container.
	got = bytes.ReplaceAll(got, []byte(devcontainer.ID(dir, file)), []byte("${devcontainerId}"))
	var ours map[string]any
	must.Do(t, json.Unmarshal(bytes.ReplaceAll(got, []byte(dir), []byte(theProject)), &ours))
	if !reflect.DeepEqual(ours, want.Configuration) {
		t.Errorf("read as %v\nwant %v", ours, want.Configuration)
	}
	if want.Workspace == nil {
		t.Fatal("the answer has no workspace")
	}
	if plan.Workspace.Folder != want.Workspace.Folder {
		t.Errorf("the folder is %s, want %s", plan.Workspace.Folder, want.Workspace.Folder)
	}
	if mount := devcontainer.FieldsOf(want.Workspace.Mount); mount["type"] == "bind" {
		source := filepath.Join(theProject, plan.Workspace.Source)
		if mount["target"] != plan.Workspace.Mount || mount["source"] != source {
			t.Errorf("the project is %s at %s, want %v", source, plan.Workspace.Mount, mount)
		}
	}
}

// ask sets the answer of the reference. It asks an engine for containers: that there are none is all that it needs.
func (c *reference) ask(t *testing.T, dir string) {
	engine := filepath.Join(t.TempDir(), "docker")
	must.Do(t, os.WriteFile(engine, []byte("#!/bin/sh\nexit 0\n"), 0o755))
	args := []string{"read-configuration", "--workspace-folder", dir, "--docker-path", engine}
	if c.Use != "" {
		args = append(args, "--config", filepath.Join(dir, c.Use))
	}
	cmd := exec.CommandContext(t.Context(), *refresh, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range c.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.Output()
	c.Answer, c.Error = nil, ""
	if err != nil {
		c.Error = err.Error() // it prints no reason
		return
	}
	var whole map[string]json.RawMessage
	must.Do(t, json.Unmarshal(bytes.ReplaceAll(out, []byte(dir), []byte(theProject)), &whole))
	delete(whole, "ociAuthDiagnostics")
	c.Answer = must.Get(json.Marshal(whole))(t)
}
