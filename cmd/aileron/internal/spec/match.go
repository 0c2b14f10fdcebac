package spec

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/internal/console"
	"github.com/ALRubinger/aileron/internal/failure"
	"github.com/ALRubinger/aileron/internal/hint"
	"github.com/ALRubinger/aileron/proxy"
	"github.com/ALRubinger/aileron/spec"
)

func newSpecMatchCommand(a *cli.App) *cobra.Command {
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
		Args: cli.UsageArgs(cobra.ExactArgs(2)),
		RunE: func(_ *cobra.Command, args []string) error { return matchRequest(a, args[0], args[1], among) },
	}
	cmd.Flags().StringArrayVar(&among, "connector", nil,
		"as if only this one were installed, which may be of the catalogue (repeatable)")
	return cmd
}

// MatchJSON is what spec match prints.
type MatchJSON struct {
	Verdict    string                     `json:"verdict"`         // allowed or refused
	Class      string                     `json:"class,omitempty"` // of the error that the proxy answers with
	Reason     string                     `json:"reason"`          // "" when allowed
	Message    string                     `json:"message"`
	Method     string                     `json:"method"`
	URL        string                     `json:"url"`
	Connector  string                     `json:"connector_fqn,omitempty"`
	Version    string                     `json:"connector_version,omitempty"`
	Tool       string                     `json:"tool,omitempty"`
	Operation  string                     `json:"operation,omitempty"`
	Credential *connectors.CredentialJSON `json:"credential"` // null: none is injected
	Params     map[string]string          `json:"params,omitempty"`
	Asks       string                     `json:"asks,omitempty"` // when it waits for an approval
	Requested  string                     `json:"requested,omitempty"`
	Granted    []string                   `json:"granted,omitempty"`
}

func matchRequest(a *cli.App, method, raw string, among []string) error {
	if err := checkRequest(method, raw); err != nil {
		return failure.Usage(err)
	}
	connectors, err := connectors.ToMatch(a.Dir, among)
	if err != nil {
		return err
	}
	index, err := spec.NewIndex(connectors)
	if err != nil {
		return hint.New(fmt.Errorf("combine the installed connectors: %w", err),
			"remove one of the two with: aileron connector remove FQN")
	}
	j := MatchJSON{Verdict: "refused", Method: method, URL: raw}
	if authority, scheme, d := proxy.ParseURL(raw); d != nil {
		j = j.refused(d)
	} else {
		j = judge(proxy.Question{Index: index, Authority: authority, Scheme: scheme, Method: method, Target: raw})
	}
	if a.JSON {
		if err := a.PrintJSON(j); err != nil {
			return err
		}
	} else {
		printMatch(a, j)
	}
	if j.Verdict != "allowed" {
		return console.Exit(1)
	}
	return nil
}

// judge returns the proxy's own decision in the command's words.
func judge(q proxy.Question) MatchJSON {
	j := MatchJSON{Verdict: "refused", Method: q.Method, URL: q.Target}
	d := proxy.Decide(q)
	if op := d.Match.Operation; op != nil {
		j.Connector, j.Version, j.Tool, j.Operation = string(op.Connector.FQN), op.Connector.Version, op.Tool, op.Name
		j.Credential = connectors.DescribeOperation(op).Credential
		for _, p := range d.Match.Params {
			if j.Params == nil {
				j.Params = map[string]string{}
			}
			j.Params[p.Name] = p.Value
		}
	}
	switch d.Verdict {
	case proxy.Allow:
		j.Asks = d.Match.Operation.Asks()
		j.Verdict, j.Message, j.Granted = "allowed", "it is the operation "+j.Tool+" "+j.Operation, d.Match.BodyGrants()
	case proxy.SessionAPI:
		j.Verdict, j.Message = "allowed", "it is for the session's own endpoints"
	default:
		return j.refused(d.Denial)
	}
	return j
}

func (j MatchJSON) refused(d *proxy.Denial) MatchJSON {
	j.Class = d.ErrorClass()
	j.Reason, j.Message, j.Requested, j.Granted = string(d.Reason), d.Message, d.Requested, d.Granted
	return j
}

func printMatch(a *cli.App, j MatchJSON) {
	fmt.Fprintf(a.Stdout, "verdict:    %s\n", j.Verdict)
	if j.Reason != "" {
		fmt.Fprintf(a.Stdout, "reason:     %s\nwhy:        %s\n", j.Reason, j.Message)
	}
	if j.Operation != "" {
		credential := "none"
		if c := j.Credential; c != nil {
			credential = fmt.Sprintf("%s, in %s %s as %q", c.Kind, c.In, c.Name, c.Format)
		}
		fmt.Fprintf(a.Stdout, "connector:  %s %s\noperation:  %s %s\ncredential: %s\n",
			j.Connector, j.Version, j.Tool, j.Operation, credential)
	}
	if j.Asks != "" {
		fmt.Fprintf(a.Stdout, "asks:       %s\n", j.Asks)
	}
	for _, g := range j.Granted {
		fmt.Fprintf(a.Stdout, "granted:    %s\n", g)
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
