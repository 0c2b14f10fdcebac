package hosttrust_test

import (
	"context"
	"fmt"
	"os"

	"github.com/ALRubinger/aileron/audit"
	"github.com/ALRubinger/aileron/internal/hosttrust"
)

func Example() {
	home, err := os.MkdirTemp("", "hosttrust-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home)
	l := hosttrust.Ledger{Home: home, Source: audit.SourceCLI,
		Append: func(context.Context, audit.Row) error { return nil }}
	for _, r := range l.Records() {
		fmt.Println(r.Session, r.Stores)
	}
	done, err := l.Untrust(context.Background(), "01M8")
	fmt.Println(len(done), err)
	// Output: 0 <nil>
}
