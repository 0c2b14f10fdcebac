package main

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/spec"
)

func newSpecMatchCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "match METHOD URL",
		Short: "Say which operation a request is, which credential it gets, and why",
		Long: "Ask the installed connectors what a request would get: the operation, the\n" +
			"credential and its place, the verdict and the reason. Nothing is sent. The\n" +
			"exit code is 1 when the request would be refused.",
		Example: "  aileron spec match GET https://api.github.com/repos/cli/cli/issues",
		Args:    usageArgs(cobra.ExactArgs(2)),
		RunE:    func(_ *cobra.Command, args []string) error { return matchRequest(a, args[0], args[1]) },
	}
}

// matchJSON is the answer of `spec match`.
type matchJSON struct {
	Verdict    string            `json:"verdict"` // allowed or refused
	Reason     string            `json:"reason"`  // "" when allowed
	Message    string            `json:"message"`
	Method     string            `json:"method"`
	URL        string            `json:"url"`
	Connector  string            `json:"connector_fqn,omitempty"`
	Version    string            `json:"connector_version,omitempty"`
	Tool       string            `json:"tool,omitempty"`
	Operation  string            `json:"operation,omitempty"`
	Credential *credentialJSON   `json:"credential"` // null: none is injected
	Params     map[string]string `json:"params,omitempty"`
	Requested  string            `json:"requested,omitempty"`
	Granted    []string          `json:"granted,omitempty"`
}

func matchRequest(a *app, method, raw string) error {
	t, err := parseTarget(method, raw)
	if err != nil {
		return usageError{err}
	}
	s, err := a.openStore()
	if err != nil {
		return err
	}
	connectors, broken := s.Current()
	if len(broken) > 0 {
		return hint(fmt.Errorf("verify the installed connectors: %w", errors.Join(broken...)),
			"install the connector again, or remove it with: aileron connector remove FQN")
	}
	index, err := spec.NewIndex(connectors)
	if err != nil {
		return hint(fmt.Errorf("combine the installed connectors: %w", err), "remove one of the two with: aileron connector remove FQN")
	}
	j := judge(index, t)
	j.URL = raw
	if a.json {
		if err := a.printJSON(j); err != nil {
			return err
		}
	} else {
		printMatch(a, j)
	}
	if j.Verdict != "allowed" {
		return exitError{1}
	}
	return nil
}

func judge(index *spec.Index, t spec.Target) matchJSON {
	j := matchJSON{Verdict: "refused", Method: t.Method}
	m, no := index.Match(t)
	if no != nil {
		j.Reason, j.Message, j.Requested, j.Granted = no.Reason, no.Error(), no.Requested, no.Granted
		return j
	}
	op := m.Operation
	j.Connector, j.Version, j.Tool, j.Operation = string(op.Connector.FQN), op.Connector.Version, op.Tool, op.Name
	j.Credential = describeOperation(op).Credential
	for _, p := range m.Params {
		if j.Params == nil {
			j.Params = map[string]string{}
		}
		j.Params[p.Name] = p.Value
	}
	if op.Approval == "required" {
		j.Reason, j.Message = "approval_required", "the operation asks for an approval, and there is no surface to approve on yet"
		return j
	}
	j.Verdict, j.Message = "allowed", "it is the operation "+op.Tool+" "+op.Name
	return j
}

func printMatch(a *app, j matchJSON) {
	fmt.Fprintf(a.stdout, "verdict:    %s\n", j.Verdict)
	if j.Reason != "" {
		fmt.Fprintf(a.stdout, "reason:     %s\nwhy:        %s\n", j.Reason, j.Message)
	}
	if j.Operation != "" {
		credential := "none"
		if c := j.Credential; c != nil {
			credential = fmt.Sprintf("%s, in %s %s as %q", c.Kind, c.In, c.Name, c.Format)
		}
		fmt.Fprintf(a.stdout, "connector:  %s %s\noperation:  %s %s\ncredential: %s\n", j.Connector, j.Version, j.Tool, j.Operation, credential)
	}
	for _, g := range j.Granted {
		fmt.Fprintf(a.stdout, "granted:    %s\n", g)
	}
}

// parseTarget reads a method and a URL as the proxy would get them. It never
// repairs: what the proxy refuses as ambiguous has no verdict here.
func parseTarget(method, raw string) (spec.Target, error) {
	if method == "" || strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
		return spec.Target{}, fmt.Errorf("%q is not a method in upper case", method)
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.Fragment != "" {
		return spec.Target{}, fmt.Errorf("%q is not an http or https URL without userinfo and fragment", raw)
	}
	t := spec.Target{Scheme: u.Scheme, Host: strings.ToLower(u.Hostname()), Port: 443, Method: method, Path: u.EscapedPath(), Query: u.RawQuery}
	if u.Scheme == "http" {
		t.Port = 80
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return spec.Target{}, fmt.Errorf("%q has no port between 1 and 65535", raw)
		}
		t.Port = uint16(n)
	}
	if t.Path == "" {
		t.Path = "/"
	}
	return t, nil
}
