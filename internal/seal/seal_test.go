package seal_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"belfry/internal/seal"
	"belfry/pkg/errs"
)

func newSealer(t testing.TB, key []byte) *seal.Sealer {
	t.Helper()
	s, err := seal.New(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAProcessOpensWhatAnotherWithTheSameKeySealed(t *testing.T) {
	key := seal.NewKey()
	one, other := newSealer(t, key), newSealer(t, key)
	for _, content := range []string{"", "a", strings.Repeat("content", 1000)} {
		text := one.Seal("ids", []byte(content))
		if got, ok := other.Open("ids", text); !ok || string(got) != content {
			t.Errorf("%d bytes: got %q, %v", len(content), got, ok)
		}
		if strings.Trim(text, seal.Letters) != "" {
			t.Errorf("%q is not safe in a URL", text)
		}
		if want := seal.EncodedLen(len(content)); len(text) != want {
			t.Errorf("%d bytes: the text has %d characters, want %d", len(content), len(text), want)
		}
	}
}

func TestATextIsOpenedForItsPurposeAndWithItsKeyOnly(t *testing.T) {
	key := seal.NewKey()
	s := newSealer(t, key)
	text := s.Seal("ids", []byte("content"))
	for _, purpose := range []string{"", "id", "idsc", "cursors"} {
		if got, ok := s.Open(purpose, text); ok {
			t.Errorf("purpose %q: opened: %q", purpose, got)
		}
	}
	if got, ok := newSealer(t, seal.NewKey()).Open("ids", text); ok {
		t.Errorf("another key: opened: %q", got)
	}
}

func TestAChangedTextIsNotOpened(t *testing.T) {
	s := newSealer(t, seal.NewKey())
	text := s.Seal("ids", []byte("content"))
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sealed {
		for bit := range 8 {
			changed := bytes.Clone(sealed)
			changed[i] ^= 1 << bit
			if _, ok := s.Open("ids", base64.RawURLEncoding.EncodeToString(changed)); ok {
				t.Errorf("bit %d of byte %d is changed: opened", bit, i)
			}
		}
	}
	for i := range len(text) {
		if _, ok := s.Open("ids", text[:i]); ok {
			t.Errorf("cut to %d characters: opened", i)
		}
	}
	for _, other := range []string{text + "A", text + "=", text + "\n", "\r" + text, text[:9] + "\n" + text[9:],
		" " + text, "42"} {
		if _, ok := s.Open("ids", other); ok {
			t.Errorf("%q: opened", other)
		}
	}
}

func TestTextsOfTheSameContentDiffer(t *testing.T) {
	s := newSealer(t, seal.NewKey())
	seen := map[string]bool{}
	for range 1000 {
		text := s.Seal("ids", []byte("content"))
		if start := text[2:20]; seen[start] { // of the nonce
			t.Fatalf("%q is not new", text)
		} else {
			seen[start] = true
		}
	}
}

func TestAKeyOfAnotherLengthIsRefused(t *testing.T) {
	for _, key := range [][]byte{nil, []byte("secret"), bytes.Repeat([]byte("k"), seal.KeySize+1)} {
		_, err := seal.New(key)
		if !errors.Is(err, errs.Internal) || len(key) > 0 && strings.Contains(err.Error(), string(key)) {
			t.Errorf("%d bytes: %v", len(key), err)
		}
	}
}

// Whatever a client sends, nothing is opened that was not sealed.
func FuzzOpen(f *testing.F) {
	s := newSealer(f, bytes.Repeat([]byte{7}, seal.KeySize))
	for _, text := range []string{"", "0", "42", "AQ", s.Seal("other", []byte("content")), strings.Repeat("A", 100)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if content, ok := s.Open("ids", text); ok {
			t.Errorf("%q: opened: %q", text, content)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	s := newSealer(b, seal.NewKey())
	for b.Loop() {
		s.Seal("ids", make([]byte, 8))
	}
}
