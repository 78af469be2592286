package files

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"testing"

	"belfry/pkg/errs"
)

func TestContentDigest(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("hello"))
	text := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	for _, c := range []struct {
		lines []string
		given bool
	}{
		{nil, false},
		{[]string{text}, true},
		{[]string{text + ";about=us"}, true},
		{[]string{"sha-512=:AAAA:, " + text}, true},
		{[]string{"unixsum=30637", text}, true}, // two lines are one
		{[]string{"sha-512=:AAAA:"}, false},
		{[]string{"md5=:AAAA:, adler=?1"}, false},
	} {
		got, err := contentDigest(c.lines)
		if err != nil || (got != nil) != c.given || c.given && string(got) != string(sum[:]) {
			t.Errorf("%q: %x, %v", c.lines, got, err)
		}
	}
	for _, malformed := range []string{
		"sha-256", "sha-256=", "sha-256=abc", "sha-256=:AAAA:", "sha-256=:!:", "sha-256=" + hex.EncodeToString(sum[:]),
		"SHA-256=:AAAA:", text + ",", "sha-256=(:AAAA:)", "sha-256=1", "=", ",", "\"",
	} {
		if got, err := contentDigest([]string{malformed}); !errors.Is(err, errs.Invalid) {
			t.Errorf("%q: %x, %v", malformed, got, err)
		}
	}
	if got := reprDigest(hex.EncodeToString(sum[:])); got != text {
		t.Errorf("%s, want %s", got, text)
	}
}
