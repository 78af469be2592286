package console_test

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/object"
)

// Only pictures and texts are shown, by their content, from an origin of their own.
func TestFilesHavePreviews(t *testing.T) {
	t.Parallel()
	const (
		pngStart = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
		gif      = "GIF89a<script>alert(1)</script>"
		svg      = `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`
		xml      = `<?xml version="1.0"?>` + svg
		page     = "<html><script>alert(1)</script>"
		pdf      = "%PDF-1.7\n"
	)
	text := "text/plain; charset=utf-8"
	l := startShelf(t)
	_, err := l.set.Store("Books").Save(t.Context(), object.Object{}, "emma")
	l.Must(err)
	for i, c := range []struct {
		kind, content, shown string
		picture              bool // the page shows it
	}{
		{"image/png", pngStart, "image/png", true},
		{"text/plain", pngStart, "image/png", false},
		{"image/gif", gif, "image/gif", true},
		{"image/jpeg", "\xff\xd8\xff\xe0", "image/jpeg", true},
		{"image/webp", "RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp", true},
		{"image/avif", "\x00\x00\x00\x1cftypavif\x00\x00\x00\x00", "image/avif", true},
		{"image/svg+xml", svg, text, false},
		{"image/png", svg, text, true}, // it claims to be one; an img with a text is broken
		{"image/svg+xml", xml, text, false},
		{"text/html", page, text, false},
		{"image/png", page, text, true},
		{"text/plain", "plain <b>", text, false},
		{"text/plain", "\xff\xfet\x00", "", false},
		{"application/pdf", pdf, "", false},
		{"image/png", "\x00\x01\x02", "", true},
		{"image/bmp", "BM\x00", "", false},
		{"text/javascript", "alert(1)", text, false},
	} {
		leads(t, l.upload(l.Admin, emma+"/files/covers", fmt.Sprintf("<b>%d", i), c.kind, c.content), emma)
		path := fmt.Sprintf("%s/files/covers/%d/preview", emma, i)
		shown := strings.Contains(is(t, l.get(l.Admin, emma), http.StatusOK).Text, `src="`+path+`?small=true"`)
		if shown != c.picture {
			t.Errorf("%s %q is shown: %t", c.kind, c.content, shown)
		}
		if c.shown == "" {
			r := is(t, l.get(l.Admin, path), http.StatusNotFound)
			r.HasHeader("Content-Type", "text/html; charset=utf-8")
			continue
		}
		r := is(t, l.get(l.Admin, path), http.StatusOK)
		r.HasHeader("Content-Type", c.shown).HasHeader("X-Content-Type-Options", "nosniff").
			HasHeader("Content-Security-Policy", "default-src 'none'; sandbox").
			HasHeader("Cross-Origin-Resource-Policy", "same-origin").HasHeader("X-Frame-Options", "DENY").
			HasHeader("Cache-Control", "no-store").HasHeader("Content-Disposition", "inline")
		if r.Text != c.content {
			t.Errorf("%q, expected %q", r.Text, c.content)
		}
		is(t, l.get("", path), http.StatusSeeOther)
		is(t, l.get(l.User, path), http.StatusForbidden)
	}
	if r := l.get(l.Admin, emma); strings.Contains(r.Text, "<b>") {
		t.Error("the name of a file is not escaped")
	}
	is(t, l.get(l.Admin, emma+"/files/covers/99/preview"), http.StatusNotFound)
	is(t, l.get(l.Admin, emma+"/files/margin/0/preview"), http.StatusNotFound)
	for range 25 {
		leads(t, l.upload(l.Admin, emma+"/files/covers", "a", "image/png", pngStart), emma)
	}
	if n := strings.Count(is(t, l.get(l.Admin, emma), http.StatusOK).Text, "<img class=\"preview\""); n != 24 {
		t.Errorf("a page shows %d pictures", n)
	}
}

// Pages have thumbnails of pictures. A file without one is shown as it is, if it is small.
func TestPreviewsOfPagesAreThumbnails(t *testing.T) {
	t.Parallel()
	l := startShelf(t)
	_, err := l.set.Store("Books").Save(t.Context(), object.Object{}, "emma")
	l.Must(err)
	picture := func(side int) string {
		var b bytes.Buffer
		l.Must(png.Encode(&b, image.NewGray(image.Rect(0, 0, side, side))))
		return b.String()
	}
	const avif = "\x00\x00\x00\x1cftypavif\x00\x00\x00\x00"
	for i, c := range []struct{ kind, content, shown string }{
		{"image/png", picture(2000), "image/jpeg"},
		{"text/plain", picture(300), "image/jpeg"},
		{"image/avif", avif, "image/avif"},
		{"image/png", picture(300)[:60], "image/png"}, // truncated
		{"text/plain", "plain", "text/plain; charset=utf-8"},
	} {
		leads(t, l.upload(l.Admin, emma+"/files/covers", "a", c.kind, c.content), emma)
		path := fmt.Sprintf("%s/files/covers/%d/preview?small=true", emma, i)
		r := is(t, l.get(l.Admin, path), http.StatusOK)
		r.HasHeader("Content-Type", c.shown).HasHeader("X-Content-Type-Options", "nosniff").
			HasHeader("Content-Security-Policy", "default-src 'none'; sandbox").
			HasHeader("Cross-Origin-Resource-Policy", "same-origin").HasHeader("Cache-Control", "no-store")
		if c.shown != "image/jpeg" {
			if r.Text != c.content {
				t.Errorf("%d: %q, expected %q", i, r.Text, c.content)
			}
		} else if p, err := jpeg.DecodeConfig(strings.NewReader(r.Text)); err != nil || p.Width != 192 || p.Height != 192 {
			t.Errorf("%d: %v, %v", i, p, err)
		}
		is(t, l.get("", path), http.StatusSeeOther)
		is(t, l.get(l.User, path), http.StatusForbidden)
	}
}
