package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/ALRubinger/aileron/audit"
)

// record writes one row about what a command did. What cannot be recorded is
// told, not undone: the command's work has happened.
func (a *app) record(ctx context.Context, row audit.Row) {
	row.Source = audit.SourceCLI
	if err := a.tryRecord(ctx, row); err != nil {
		a.sayf("aileron: warning: %v", err)
	}
}

func (a *app) tryRecord(ctx context.Context, row audit.Row) error {
	home, err := a.Home()
	if err != nil {
		return err
	}
	conf, err := readConfig(home)
	if err != nil {
		return err
	}
	log, err := audit.Open(filepath.Join(home, "audit.db"), audit.Options{Durability: conf.Audit.Durability, OnBroken: a.auditBroken})
	if err != nil {
		return err
	}
	_, err = log.Append(ctx, row)
	if closeErr := log.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("record %s: %w", row.Event, err)
	}
	return nil
}
