package postgres_test

import (
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/postgres"
)

func TestAnErrorHasNoPasswordOfItsURL(t *testing.T) {
	for _, text := range []string{
		"postgres://u:canary@h:port/db", "postgres://u:canary@h/db?sslmode=canary", "postgres://u:can%ary@h/db",
		"postgres://h/db?password=canary&sslmode=nope", "mysql://u:canary@h/db",
		"postgres://u:canary@h/db?servicefile=canary",
		"postgres://u:canary@[h/db", "user=u password=canary",
	} {
		_, err := postgres.Parse(text, func(string) string { return "" })
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("Parse(%q): %v", text, err)
		}
	}
	d, err := postgres.Parse("postgres://u:canary@db.example/audit", func(string) string { return "" })
	if err != nil || d.String() != "postgres db.example:5432 audit" {
		t.Errorf("Parse: %v, %v", d, err)
	}
}
