package gunzip_test

import (
	"bytes"
	"compress/gzip"
	"testing"

	"belfry/internal/gunzip"
)

func packed(t *testing.T, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestContentIsReturned(t *testing.T) {
	for _, content := range []string{"", "a", string(bytes.Repeat([]byte("belfry "), 10_000))} {
		if got := gunzip.Bytes(packed(t, content)); string(got) != content {
			t.Errorf("%d bytes instead of %d", len(got), len(content))
		}
	}
}

func TestDamageIsNoticed(t *testing.T) {
	whole := packed(t, "a text that is long enough")
	for name, damage := range map[string]func([]byte) []byte{
		"no header": func(b []byte) []byte { return b[1:] },
		"checksum":  func(b []byte) []byte { b[len(b)-8] ^= 1; return b },
		"size":      func(b []byte) []byte { b[len(b)-4]--; return b },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("nothing was noticed")
				}
			}()
			gunzip.Bytes(damage(bytes.Clone(whole)))
		})
	}
}
