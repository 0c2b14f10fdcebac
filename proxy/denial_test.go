package proxy

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestEveryReasonHasAKindAndAPlaceInTheManual(t *testing.T) {
	source, err := os.ReadFile("denial.go")
	must(t, err)
	manual, err := os.ReadFile("../docs/errors.md")
	must(t, err)
	reasons := regexp.MustCompile(`reason[A-Z]\w+\s+= "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(reasons) < 30 {
		t.Fatalf("found %d reasons", len(reasons))
	}
	for _, r := range append(reasons, []string{"", "operation_not_matched"}, []string{"", "query_not_declared"}) {
		k := kindOf(r[1])
		if k.class == "connector_runtime_error" && r[1] != reasonPanic {
			t.Errorf("%s has no kind", r[1])
		}
		if !strings.Contains(string(manual), "`"+r[1]+"`") || !strings.Contains(string(manual), "`"+k.class+"`") {
			t.Errorf("docs/errors.md does not explain %s (%s)", r[1], k.class)
		}
	}
}
