package audit_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ALRubinger/aileron/audit"
)

// A request leaves two rows: the intent before it is sent, and the outcome.
func Example() {
	home, err := os.MkdirTemp("", "audit")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(home)
	if err := record(context.Background(), filepath.Join(home, "audit.db")); err != nil {
		log.Print(err)
	}
	// Output:
	// connector.proxy.started GET api.example.com/items 0
	// connector.proxy.proxied GET api.example.com/items 200
	// intact: true, 2 rows
}

func record(ctx context.Context, path string) error {
	l, err := audit.Open(path, audit.Options{})
	if err != nil {
		return err
	}
	defer l.Close()

	row := audit.Row{
		Event: audit.EventProxyStarted, Source: audit.SourceConnectTLS,
		Method: "GET", Host: "api.example.com", Path: "/items",
		Fields: map[string]any{"request_id": audit.NewID()},
	}
	if _, err := l.Append(ctx, row); err != nil {
		return err // audit.ErrUnavailable: the request must not be sent
	}
	row.Event, row.Decision, row.Status = audit.EventProxyProxied, audit.DecisionProxied, 200
	if _, err := l.Append(ctx, row); err != nil {
		return err
	}

	rows, err := l.List(ctx, audit.Filter{Host: "api.example.com"})
	if err != nil {
		return err
	}
	for _, r := range rows {
		fmt.Println(r.Event, r.Method, r.Host+r.Path, r.Status)
	}
	report, err := l.Verify(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("intact: %v, %d rows\n", report.OK, report.Rows)
	return nil
}
