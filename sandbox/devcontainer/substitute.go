package devcontainer

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// variable is one of a configuration, such as ${localEnv:HOME:/root}.
var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{(.*?)\}`)
})

// containerEnv is the one that only the container knows.
const containerEnv = "containerEnv"

// substitute replaces the variables in all values of the configuration, as the reference implementation does: names of
// properties keep theirs, and so does what is no variable. ${containerEnv:…} is left: [Value.In] replaces it.
func (c *composer) substitute() error {
	// The workspace comes first: other values name it.
	folder, mount := c.doc.root["workspaceFolder"], c.doc.root["workspaceMount"]
	local := c.localVariables()
	var err error
	replaced := map[string]any{}
	for name, value := range map[string]any{"workspaceFolder": folder, "workspaceMount": mount} {
		if replaced[name], err = replace(value, local); err != nil {
			return err
		}
	}
	c.workspace = path.Join("/workspaces", filepath.Base(c.Dir))
	if text, ok := replaced["workspaceFolder"].(string); ok {
		c.workspace = text
	} else if text, ok := replaced["workspaceMount"].(string); ok && folder == nil {
		if target := fieldsOf(text)["target"]; target != "" {
			c.workspace = target
		}
	}
	root, err := replace(c.doc.root, c.bounded(c.containerVariables(local)))
	if err != nil {
		return err
	}
	c.doc.root = root.(map[string]any)
	return nil
}

// lookup returns the value of a variable; ok is false for one that keeps its text.
type lookup func(name string, args []string) (value string, ok bool, err error)

// maxAdded bounds what variables add to a configuration, in bytes: one that is long can be named thousands of times.
const maxAdded = 1 << 20

// bounded returns an error for a variable beyond the bound.
func (c *composer) bounded(in lookup) lookup {
	return func(name string, args []string) (string, bool, error) {
		value, ok, err := in(name, args)
		if c.added += len(value); c.added > maxAdded {
			return "", false, fmt.Errorf("its variables add more than %d MiB; ${%s} is the one that is too much",
				maxAdded>>20, name)
		}
		return value, ok, err
	}
}

// localVariables returns the variables of this host.
func (c *composer) localVariables() lookup {
	return func(name string, args []string) (string, bool, error) {
		switch name {
		case "env", "localEnv":
			if len(args) == 0 || args[0] == "" {
				return "", false, fmt.Errorf("${%s} names no variable; write ${%[1]s:NAME}", name)
			}
			if c.Verbatim {
				return "", false, nil
			}
			value, found := c.Getenv(args[0])
			if !found && len(args) > 1 {
				value = args[1]
			}
			c.plan.local(args[0], value)
			return value, true, nil
		case "localWorkspaceFolder":
			return c.Dir, true, nil
		case "localWorkspaceFolderBasename":
			return filepath.Base(c.Dir), true, nil
		}
		return "", false, nil
	}
}

// containerVariables returns all variables but those of the container's environment.
func (c *composer) containerVariables(local lookup) lookup {
	return func(name string, args []string) (string, bool, error) {
		switch name {
		case "containerWorkspaceFolder":
			return c.workspace, true, nil
		case "containerWorkspaceFolderBasename":
			return path.Base(c.workspace), true, nil
		case "devcontainerId":
			return ID(c.Dir, c.File), true, nil
		}
		return local(name, args)
	}
}

// replace returns a value with the variables of its strings replaced.
func replace(value any, in lookup) (any, error) {
	switch v := value.(type) {
	case string:
		return replaceText(v, in)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			var err error
			if list[i], err = replace(item, in); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, item := range v {
			var err error
			if object[name], err = replace(item, in); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return value, nil
}

func replaceText(text string, in lookup) (string, error) {
	var failed error
	replaced := variable().ReplaceAllStringFunc(text, func(match string) string {
		if failed != nil {
			return match
		}
		parts := strings.Split(match[2:len(match)-1], ":")
		value, ok, err := in(parts[0], parts[1:])
		switch {
		case err != nil:
			failed = err
			return match
		case !ok:
			return match
		}
		return value
	})
	return replaced, failed
}

// ID returns the value of ${devcontainerId} for the configuration file of the project in dir, as the reference
// implementation makes it: a digest of both paths that is the same in each session.
func ID(dir, file string) string {
	var labels bytes.Buffer
	encoder := json.NewEncoder(&labels)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string]string{ // sorted
		"devcontainer.config_file": filepath.Join(dir, file), "devcontainer.local_folder": dir,
	}); err != nil { // a map of strings
		return ""
	}
	digest := sha256.Sum256(bytes.TrimSuffix(labels.Bytes(), []byte("\n")))
	number := new(big.Int).SetBytes(digest[:]).Text(32)
	return strings.Repeat("0", 52-len(number)) + number
}
