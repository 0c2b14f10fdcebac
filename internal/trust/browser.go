package trust

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
)

// chromiumPolicies are where the browsers of that kind read their policies.
var chromiumPolicies = [...]string{"/etc/chromium", "/etc/opt/chrome", "/etc/opt/chrome_for_testing"}

const firefoxPolicies = "/etc/firefox/policies/policies.json"

// chromium adds a policy of its own: these browsers read every file of their
// directory.
func (in *installer) chromium() {
	block, _ := pem.Decode(in.root)
	if block == nil {
		in.fail(errors.New("the root is not PEM"))
		return
	}
	der := base64.StdEncoding.EncodeToString(block.Bytes)
	policy, err := json.Marshal(map[string][]string{"CACertificates": {der}})
	if err != nil {
		in.fail(err)
		return
	}
	for _, dir := range chromiumPolicies {
		in.put(dir+"/policies/managed/aileron.json", policy)
	}
}

// firefox adds the root to Firefox's policies, which are one file. Where the
// image's own cannot be read, they stay as they are.
func (in *installer) firefox() {
	if in.err != nil {
		return
	}
	policies, err := in.firefoxPolicies()
	if err != nil {
		in.options.Log.Warn("Firefox in the sandbox will not trust the session", "error", err)
		return
	}
	in.put(firefoxPolicies, policies)
}

func (in *installer) firefoxPolicies() ([]byte, error) {
	own, err := in.read(firefoxPolicies)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := map[string]any{}
	if own != nil {
		if err := json.Unmarshal(own, &all); err != nil {
			return nil, fmt.Errorf("read %s of the image: %w", firefoxPolicies, err)
		}
		if all == nil { // the file is "null"
			all = map[string]any{}
		}
	}
	certificates := object(object(all, "policies"), "Certificates")
	install, _ := certificates["Install"].([]any)
	certificates["Install"] = append(install, CAFile)
	return json.Marshal(all)
}

// object returns the object under a key. What else is there is replaced.
func object(in map[string]any, key string) map[string]any {
	found, ok := in[key].(map[string]any)
	if !ok {
		found = map[string]any{}
		in[key] = found
	}
	return found
}
