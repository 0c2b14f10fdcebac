package upstream

import (
	"errors"
	"testing"

	"github.com/ALRubinger/aileron/e2e/must"
)

// Two checks stand one behind the other, so each is tried by itself: with both
// in place no test would fail without one of them.

func TestTheAddressThatWasResolvedIsChecked(t *testing.T) {
	u, err := New(Options{})
	must.Do(t, err)
	for host, class := range map[string]string{
		"127.0.0.1": "loopback", "10.1.2.3": "private", "169.254.169.254": "metadata",
		"::1": "loopback", "::ffff:10.0.0.1": "private", "fd00:ec2::254": "metadata",
	} {
		got, err := u.addresses(t.Context(), host)
		var refused *addressError
		if !errors.As(err, &refused) || refused.class != class {
			t.Errorf("%s: %v, %v, want an addressError of class %s", host, got, err, class)
		}
	}
	if got, err := u.addresses(t.Context(), "93.184.215.14"); err != nil || len(got) != 1 {
		t.Errorf("a public address: %v, %v", got, err)
	}
}

func TestTheAddressThatIsDialledIsChecked(t *testing.T) {
	u, err := New(Options{})
	must.Do(t, err)
	for _, at := range []string{
		"127.0.0.1:443", "10.1.2.3:443", "[::1]:443", "[::ffff:169.254.169.254]:443", "[fe80::1%lo]:443", "nonsense",
	} {
		var refused *addressError
		if err := u.denyPrivate(t.Context(), "tcp", at, nil); !errors.As(err, &refused) {
			t.Errorf("%s: %v, want an addressError", at, err)
		}
	}
	if err := u.denyPrivate(t.Context(), "tcp", "93.184.215.14:443", nil); err != nil {
		t.Errorf("a public address: %v", err)
	}
}

func TestAPrivateAddressIsNeverDialled(t *testing.T) {
	u, err := New(Options{})
	must.Do(t, err)
	for _, at := range []string{"127.0.0.1:443", "169.254.169.254:80", "[::1]:443"} {
		_, err := u.Dial(t.Context(), at)
		var e *Error
		if !errors.As(err, &e) || e.Kind != AddressDenied || e.Host != at {
			t.Errorf("dialled %s: %v, want %v", at, err, AddressDenied)
		}
	}
}
