package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec"
	"github.com/ALRubinger/aileron/spec/catalog"
)

func newSpecMatchCommand(a *app) *cobra.Command {
	var among []string
	cmd := &cobra.Command{
		Use:   "match METHOD URL",
		Short: "Show what would happen to a request: operation, credential, verdict",
		Long: "Show what the installed connectors decide about a request: the operation, the\n" +
			"credential and its place, the verdict and the reason. The decision is the\n" +
			"proxy's own, for exactly this URL, byte by byte. Nothing is sent. The exit\n" +
			"code is 1 if the request would be refused.",
		Example: "  aileron spec match GET https://api.github.com/repos/cli/cli/issues\n" +
			"  aileron spec match --connector npm GET https://registry.npmjs.org/left-pad",
		Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(_ *cobra.Command, args []string) error { return matchRequest(a, args[0], args[1], among) },
	}
	cmd.Flags().StringArrayVar(&among, "connector", nil,
		"as if only this one were installed, which may be of the catalogue (repeatable)")
	return cmd
}

// matchJSON is what spec match prints.
type matchJSON struct {
	Verdict    string            `json:"verdict"`         // allowed or refused
	Class      string            `json:"class,omitempty"` // of the error that the proxy answers with
	Reason     string            `json:"reason"`          // "" when allowed
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

func matchRequest(a *app, method, raw string, among []string) error {
	if err := checkRequest(method, raw); err != nil {
		return usageError{err}
	}
	connectors, err := a.connectorsToMatch(among)
	if err != nil {
		return err
	}
	index, err := spec.NewIndex(connectors)
	if err != nil {
		return hint.New(fmt.Errorf("combine the installed connectors: %w", err),
			"remove one of the two with: aileron connector remove FQN")
	}
	j := matchJSON{Verdict: "refused", Method: method, URL: raw}
	if authority, scheme, d := proxy.ParseURL(raw); d != nil {
		j = j.refused(d)
	} else {
		j = judge(proxy.Question{Index: index, Authority: authority, Scheme: scheme, Method: method, Target: raw})
	}
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

// connectorsToMatch returns the installed connectors, or those with the names of among: installed, else of the
// catalogue.
func (a *app) connectorsToMatch(among []string) ([]*spec.Connector, error) {
	s, err := a.openStore()
	if err != nil {
		return nil, err
	}
	installed, broken := s.Current()
	if len(broken) > 0 {
		return nil, hint.New(fmt.Errorf("verify the installed connectors: %w", errors.Join(broken...)),
			"install the connector again, or remove it with: aileron connector remove FQN")
	}
	if len(among) == 0 {
		return installed, nil
	}
	var chosen []*spec.Connector
	for _, name := range among {
		fqn, err := a.connectorNames().resolve(name)
		if err != nil {
			return nil, err
		}
		c := byName(installed)[string(fqn)]
		if entry, ok := catalog.Find(string(fqn)); ok && c == nil {
			c = entry.Connector
		}
		if c == nil {
			return nil, notInstalled(name, fqn)
		}
		chosen = append(chosen, c)
	}
	return chosen, nil
}

// judge returns the proxy's own decision in the command's words.
func judge(q proxy.Question) matchJSON {
	j := matchJSON{Verdict: "refused", Method: q.Method, URL: q.Target}
	d := proxy.Decide(q)
	if op := d.Match.Operation; op != nil {
		j.Connector, j.Version, j.Tool, j.Operation = string(op.Connector.FQN), op.Connector.Version, op.Tool, op.Name
		j.Credential = describeOperation(op).Credential
		for _, p := range d.Match.Params {
			if j.Params == nil {
				j.Params = map[string]string{}
			}
			j.Params[p.Name] = p.Value
		}
	}
	switch d.Verdict {
	case proxy.Allow:
		j.Verdict, j.Message = "allowed", "it is the operation "+j.Tool+" "+j.Operation
	case proxy.SessionAPI:
		j.Verdict, j.Message = "allowed", "it is for the session's own endpoints"
	default:
		return j.refused(d.Denial)
	}
	return j
}

func (j matchJSON) refused(d *proxy.Denial) matchJSON {
	j.Class = d.ErrorClass()
	j.Reason, j.Message, j.Requested, j.Granted = string(d.Reason), d.Message, d.Requested, d.Granted
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
		fmt.Fprintf(a.stdout, "connector:  %s %s\noperation:  %s %s\ncredential: %s\n",
			j.Connector, j.Version, j.Tool, j.Operation, credential)
	}
	for _, g := range j.Granted {
		fmt.Fprintf(a.stdout, "granted:    %s\n", g)
	}
}

// checkRequest refuses what is a typing error rather than a request: a method or a URL that no client would send.
func checkRequest(method, raw string) error {
	if method == "" || strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
		return fmt.Errorf("%q is not a method in upper case", method)
	}
	scheme, _, found := strings.Cut(raw, "://")
	if !found || !strings.EqualFold(scheme, "https") && !strings.EqualFold(scheme, "http") {
		return fmt.Errorf("%q is not an http or https URL", raw)
	}
	if strings.Contains(raw, "#") {
		return fmt.Errorf("%q has a fragment, which no client sends", raw)
	}
	return nil
}
