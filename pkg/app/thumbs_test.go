package app

import (
	"bytes"
	"image"
	"image/jpeg"
	"net/http"
	"strings"
	"testing"
)

// Thumbnails have the sizes of the configuration that is served, and are for those who may read the object.
func TestThumbnailsFollowTheConfiguration(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores: {Books: {expose: {list: true}, uuid: client}}
binaries: {binary: {map: {Books: [covers]}}}
`
	p := newPlace(t, text)
	a, _ := p.reloadable()
	var picture bytes.Buffer
	if err := jpeg.Encode(&picture, image.NewGray(image.Rect(0, 0, 600, 400)), nil); err != nil {
		t.Fatal(err)
	}
	p.want(a, "POST", "/books", `{"uuid":"b1"}`, http.StatusCreated)
	p.want(a, "PUT", "/binary/upload/Books/b1/covers/add", picture.String(), http.StatusCreated)
	const path = "/binary/Books/b1/covers/0?thumb="
	width := func(size string, want int) {
		t.Helper()
		status, body := p.do(a, "GET", path+size, "")
		m, err := jpeg.DecodeConfig(strings.NewReader(body))
		if status != http.StatusOK || err != nil || m.Width != want {
			t.Errorf("%s: %d, %d pixels, %v", size, status, m.Width, err)
		}
	}
	width("90x90", 90)
	width("300x300", 300)
	width("1200x", 600)
	p.want(a, "GET", path+"50x", "", http.StatusBadRequest)

	p.reload(a, strings.Replace(text, "binary: {map:", "binary: {thumbs: [50x, 90x90], map:", 1))
	width("50x", 50)
	width("90x90", 90)
	p.want(a, "GET", path+"1200x", "", http.StatusBadRequest)

	p.reload(a, strings.Replace(text, "binary: {map:", "binary: {thumbs: [], map:", 1))
	p.want(a, "GET", path+"90x90", "", http.StatusBadRequest)

	p.reload(a, strings.Replace(text, "uuid: client}", `uuid: client, policy: {get: "false"}}`, 1))
	p.want(a, "GET", path+"90x90", "", http.StatusUnauthorized)
}
