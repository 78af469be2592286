package console

import (
	"testing"

	"belfry/pkg/binary"
)

func TestOnlySmallPicturesAndTextsHavePreviews(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind          string
		size          int64
		picture, text bool
	}{
		{"image/png", 1, true, false},
		{"IMAGE/PNG; a=b", maxPreview, true, false},
		{"image/png", maxPreview + 1, false, false},
		{"image/png", 0, false, false},
		{"image/svg+xml", 1, false, false},
		{"text/html", 1, false, true},
		{"text/plain; charset=utf-16", 1, false, true},
		{"application/json", 1, false, true},
		{"application/pdf", 1, false, false},
		{"nonsense", 1, false, false},
		{"", 1, false, false},
	} {
		if picture, text := previewable(binary.Record{Mimetype: c.kind, Size: c.size}); picture != c.picture ||
			text != c.text {
			t.Errorf("%q of %d bytes: %t, %t", c.kind, c.size, picture, text)
		}
	}
}
