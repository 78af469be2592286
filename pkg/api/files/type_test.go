package files

import (
	"errors"
	"strings"
	"testing"

	"belfry/pkg/errs"
)

func TestMediaType(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                               "application/octet-stream",
		"image/png":                      "image/png",
		"IMAGE/PNG":                      "image/png",
		" text/plain ;Charset=\"UTF-8\"": "text/plain; charset=UTF-8",
		"video/mp4; codecs=\"avc1.4D, mp4a.40.2\"": `video/mp4; codecs="avc1.4D, mp4a.40.2"`,
		"application/vnd.x+json":                   "application/vnd.x+json",
		"image/jpg":                                "image/jpeg",
		"Image/PJPEG; a=b":                         "image/jpeg; a=b",
		"a/b":                                      "a/b",
	} {
		if got, err := mediaType(given); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", given, got, err, want)
		}
	}
	for _, malformed := range []string{
		"image", "image/", "/png", ";;;", "image/png/x", "image/*", "*/*", "text/html<script>", "text/plain; charset",
		"a/b; x=\"",
		"text/plain; a=1; a=2", "text/" + strings.Repeat("x", 300), "text/plain; x=" + strings.Repeat("y", 300),
	} {
		if got, err := mediaType(malformed); !errors.Is(err, errs.Unsupported) {
			t.Errorf("%q: %q, %v", malformed, got, err)
		}
	}
}

// A content is never sent with a type that a page can load as script or style.
func TestServedType(t *testing.T) {
	t.Parallel()
	for stored, want := range map[string]struct {
		media  string
		inline bool
	}{
		"image/png":                  {"image/png", true},
		"text/plain; charset=utf-8":  {"text/plain; charset=utf-8", true},
		"video/mp4":                  {"video/mp4", true},
		"image/jpg":                  {"image/jpeg", true}, // as a release before has stored it
		"audio/mp3":                  {"audio/mpeg", true},
		"application/x-pdf":          {"application/pdf", false},
		"application/javascript":     {"application/octet-stream", false},
		"image/svg+xml":              {"image/svg+xml", false},
		"text/html":                  {"text/html", false},
		"application/xhtml+xml":      {"application/xhtml+xml", false},
		"text/xml":                   {"text/xml", false},
		"application/pdf":            {"application/pdf", false},
		"application/json":           {"application/json", false},
		"multipart/x-mixed-replace":  {"multipart/x-mixed-replace", false},
		"text/javascript":            {"application/octet-stream", false},
		"text/JavaScript1.5; x=y":    {"application/octet-stream", false},
		"application/x-ecmascript":   {"application/octet-stream", false},
		"text/jscript":               {"application/octet-stream", false},
		"text/css":                   {"application/octet-stream", false},
		"image/png\r\nX-Injected: 1": {"application/octet-stream", false},
		"nothing of the kind":        {"application/octet-stream", false},
		"":                           {"application/octet-stream", false},
	} {
		if media, inline := servedType(stored); media != want.media || inline != want.inline {
			t.Errorf("%q: %q, %v; want %v", stored, media, inline, want)
		}
	}
}
