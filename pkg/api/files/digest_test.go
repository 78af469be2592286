package files

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
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

// The number of digests takes no memory.
func TestManyDigestsAreRefusedBeforeTheyAreKept(t *testing.T) {
	some := "a=1" + strings.Repeat(",a=1", maxDigests-1)
	if _, err := contentDigest([]string{some}); err != nil {
		t.Errorf("%d digests: %v", maxDigests, err)
	}
	for _, lines := range [][]string{{some + ",a=1"}, {some, "a=1"}, {strings.Repeat("a=1,", 15_000) + "a=1"}} {
		if _, err := contentDigest(lines); !errors.Is(err, errs.Invalid) ||
			!strings.Contains(err.Error(), "more than 32 digests") {
			t.Errorf("%d bytes: %v", len(lines[0]), err)
		}
		if n := testing.AllocsPerRun(10, func() { _, _ = contentDigest(lines) }); n > 20 {
			t.Errorf("%d bytes: %v allocations", len(lines[0]), n)
		}
	}
}
