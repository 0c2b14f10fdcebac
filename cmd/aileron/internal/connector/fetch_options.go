package connector

import (
	"github.com/spf13/cobra"

	"github.com/ALRubinger/aileron/cmd/aileron/internal/cli"
	"github.com/ALRubinger/aileron/internal/connectors"
	"github.com/ALRubinger/aileron/spec/store"
)

// FetchOptions are the flags of every verb that fetches from the sources of connectors.
type FetchOptions struct {
	cli.UpstreamOptions
	private string // the identity of the bindings of forges; "": none is used
}

func (o *FetchOptions) Register(cmd *cobra.Command) {
	o.UpstreamOptions.Register(cmd)
	cmd.Flags().StringVar(&o.private, "private", "",
		"ask forges for what is not public with your bindings of the connectors github and gitlab of this `IDENTITY`")
	cmd.Flags().Lookup("private").NoOptDefVal = "default"
}

// NewFetcher returns a fetcher, which the caller closes. Nothing is sent yet.
func (o *FetchOptions) NewFetcher(a *cli.App, s *store.Store) (*connectors.Fetcher, error) {
	_, conf, err := a.Settings()
	if err != nil {
		return nil, err
	}
	up, err := o.Upstream(conf)
	if err != nil {
		return nil, err
	}
	var private *connectors.Private
	if o.private != "" {
		private = &connectors.Private{Dir: a.Dir, Identity: o.private, Open: a.Unlock}
	}
	return connectors.NewFetcher(a.Console, s, conf.Sources, up, private)
}
