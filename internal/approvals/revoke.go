package approvals

import (
	"context"
	"errors"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/proxy/approval"
)

// Revoke takes a decision for always back. It counts in any case; the error is also one of recording it.
func Revoke(ctx context.Context, home string, q approval.Question, surface string,
	open func() (*audit.Log, error)) error {
	if err := In(home).Drop(q.ID); err != nil {
		return err
	}
	log, err := open()
	if err != nil {
		return err
	}
	_, err = log.Append(ctx, audit.Row{
		Event: audit.EventApprovalDenied, Source: audit.SourceCLI, ConnectorFQN: q.Connector, ConnectorVersion: q.Version,
		Tool: q.Tool, Operation: q.Operation, Binding: q.Binding, Method: q.Method, Host: q.Host,
		Fields: map[string]any{"approval_id": q.ID, "connector_hash": q.Hash, "surface": surface, "revoked": true},
	})
	return errors.Join(err, log.Close())
}
