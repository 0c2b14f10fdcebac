package doctor

import (
	"context"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/internal/home"
	"github.com/ALRubinger/aileron/proxy/upstream"
)

func TestAFindingOffersWhatTheNetworkNeeds(t *testing.T) {
	fake := upstream.Survey{Fake: netip.MustParsePrefix("198.18.0.0/15")}
	for name, c := range map[string]struct {
		survey     upstream.Survey
		err        error
		allowed    []string
		state, has string
	}{
		"a local proxy":  {fake, nil, nil, StateWarn, `allow_ranges = ["198.18.0.0/15"]`},
		"an allowed one": {fake, nil, []string{"10.0.0.0/8", "198.18.0.0/15"}, StateOK, "allow_ranges allows"},
		"a larger one":   {fake, nil, []string{"198.16.0.0/12"}, StateOK, "allow_ranges allows"},
		"a part of it": {fake, nil, []string{"198.18.5.0/24", "198.18.0.0/16"}, StateWarn,
			`allow_ranges = ["198.18.0.0/15"]`},
		"another":  {fake, nil, []string{"10.0.0.0/8"}, StateWarn, "every name resolves to an address of 198.18"},
		"no names": {upstream.Survey{}, context.DeadlineExceeded, nil, StateWarn, "--upstream-proxy"},
		"NAT64": {upstream.Survey{NAT64: []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96")}}, nil, nil, StateOK,
			"64:ff9b::/96"},
		"an ordinary one": {upstream.Survey{}, nil, nil, StateOK, "names resolve"},
	} {
		if f := surveyed(c.survey, c.err, c.allowed); f.State != c.state || !strings.Contains(f.Text+f.Fix, c.has) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestAProxyOfTheHostThatIsNotUsedIsFound(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://me:pass@proxy.test:3128")
	var found []Finding
	d := &Doctor{Dir: &home.Dir{Flag: filepath.Join(t.TempDir(), "home")},
		Found: func(f Finding) { found = append(found, f) }}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no name is resolved
	d.checkNetwork(ctx)
	if len(found) != 1 || found[0].State != StateWarn || !strings.Contains(found[0].Text, "HTTPS_PROXY") ||
		!strings.Contains(found[0].Fix, "--upstream-proxy") || strings.Contains(found[0].Text+found[0].Fix, "pass@") {
		t.Errorf("found %+v", found)
	}
}
