package vault_test

import (
	"bytes"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/ALRubinger/aileron/vault"
)

// SECURITY I-12: no way of printing shows a byte.
func TestSecretDoesNotPrint(t *testing.T) {
	s := secret(t, secretText)
	c := vault.Credential{Kind: "bearer", Username: "ann", Secret: s}
	var out bytes.Buffer
	type holder struct {
		hidden vault.Secret
		Shown  *vault.Secret
	}
	for _, v := range []any{
		s, &s, c, &c, []vault.Secret{s}, map[string]vault.Secret{"k": s}, map[vault.Secret]int{s: 1},
		holder{s, &s}, &holder{s, &s}, fmt.Errorf("wrapped: %v", s),
	} {
		for _, verb := range strings.Split("v +v #v s q x X d o b c U e f g t T p w # x", " ") {
			fmt.Fprintf(&out, "%"+verb+"\n", v)
		}
		fmt.Fprintln(&out, v)
		for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(h).Info("m", "v", v, slog.Any("any", v))
		}
		if raw, err := json.Marshal(v); err == nil {
			out.Write(raw)
		}
		if raw, err := xml.Marshal(v); err == nil {
			out.Write(raw)
		}
		_ = gob.NewEncoder(&out).Encode(v)
	}
	text := strings.ToLower(out.String())
	raw := []byte(secretText)
	for _, form := range []string{
		secretText, hex.EncodeToString(raw), base64.StdEncoding.EncodeToString(raw), secretText[:6], fmt.Sprint(raw),
	} {
		if strings.Contains(text, strings.ToLower(form)) {
			t.Errorf("it prints %q", form)
		}
	}
	if !strings.Contains(text, "[secret]") {
		t.Error("nothing was printed")
	}
	for _, verb := range []string{"v", "+v", "#v", "s", "q", "x", "X", "d", "20s"} {
		if got := fmt.Sprintf("%"+verb, s); got != "[secret]" {
			t.Errorf("%%%s returns %q", verb, got)
		}
	}
	if s == secret(t, secretText) {
		t.Error("two secrets compare by accident")
	}
}

// SECURITY CRD-11, CRD-13.
func TestSecretRules(t *testing.T) {
	for in, want := range map[string]string{
		"abcdefgh": "abcdefgh", "abcdefgh\n": "abcdefgh", "abcdefgh\r\n": "abcdefgh", "with space in": "with space in",
		strings.Repeat("ab", vault.MaxSecret/2) + "\r\n": strings.Repeat("ab", vault.MaxSecret/2),
	} {
		if s, err := vault.NewSecret([]byte(in)); err != nil || s.Reveal() != want {
			t.Errorf("%.20q returns %v, %v", in, len(s.Reveal()), err)
		}
	}
	for _, in := range []string{
		"", "\n", "abc", "null", "true", "abcdefg\n", "abcdefgh\n\n", "abcdefgh\r",
		"abcd\nefgh", "abcd\refgh", "abcd\x00efgh", "abcdefgh\x7f", "abcd\tefgh",
		" abcdefgh", "abcdefgh ", "abcdefgh \n", "caf\u00e9-caf\u00e9", "\xff\xfeabcdefgh", "\ufeffabcdefgh",
		"aaaaaaaaaaaa", strings.Repeat("ab", vault.MaxSecret/2) + "c",
	} {
		s, err := vault.NewSecret([]byte(in))
		if err == nil || !s.IsZero() || s.Reveal() != "" {
			t.Errorf("%.20q is taken", in)
			continue
		}
		if bare := strings.TrimSpace(in); len(bare) > 2 && strings.Contains(err.Error(), bare) {
			t.Errorf("the error holds the value: %v", err)
		}
	}
}
