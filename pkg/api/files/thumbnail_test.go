package files_test

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"belfry/pkg/api/files"
	"belfry/pkg/apimodel"
	"belfry/pkg/binary"
)

// startPictures is a library with thumbnails of two sizes.
func startPictures(t *testing.T) *library {
	return startLibrary(t, func(_ *binary.Options, o *files.Options) {
		o.Thumbnails = binary.NewThumbnails(64<<20, 1)
	}, func(f *apimodel.Files) { f.Thumbs = []string{"9x6", "20x"} })
}

func photograph() string {
	var b bytes.Buffer
	_ = jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 90, 60)), nil)
	return b.String()
}

func TestThumbnails(t *testing.T) {
	t.Parallel()
	l := startPictures(t)
	path, hash := l.add("covers", photograph(), "X-Filename", "A%20soup.jpeg", "Content-Type", "image/jpeg")
	for size, want := range map[string]image.Point{"9x6": {9, 6}, "20x": {20, 13}} {
		r := l.Do("GET", path+"?thumb="+size, "").Want(200).HasHeader("Content-Type", "image/jpeg").
			HasHeader("Etag", `"`+hash+"-"+size+`"`).HasHeader("Cache-Control", "private, no-cache").
			HasHeader("Content-Disposition", `inline; filename="A soup.jpg"`)
		m, _, err := image.Decode(strings.NewReader(r.Text))
		if l.Must(err); m.Bounds().Size() != want {
			t.Errorf("%s is %v", size, m.Bounds())
		}
		if policy := r.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "sandbox") {
			t.Error(policy)
		}
		head := l.Do("HEAD", path+"?thumb="+size, "").Want(200)
		if head.Text != "" || head.Header.Get("Content-Length") != r.Header.Get("Content-Length") {
			t.Errorf("HEAD: %v", head.Header)
		}
		l.Do("GET", path+"?thumb="+size, "", "If-None-Match", r.Header.Get("Etag")).Want(304)
		l.Do("GET", path+"?thumb="+size, "", "If-None-Match", `"`+hash+`"`).Want(200) // that of the file
		l.Do("GET", path+"?thumb="+size, "", "Range", "bytes=0-1").Want(200)
	}
	l.Do("GET", path, "").Want(200).HasHeader("Etag", `"`+hash+`"`)

	transparent := image.NewNRGBA(image.Rect(0, 0, 90, 60))
	transparent.Set(1, 1, color.NRGBA{255, 0, 0, 128})
	var b bytes.Buffer
	l.Must(png.Encode(&b, transparent))
	path, _ = l.add("covers", b.String(), "X-Filename", "x.gif")
	l.Do("GET", path+"?thumb=9x6", "").Want(200).HasHeader("Content-Type", "image/png").
		HasHeader("Content-Disposition", `inline; filename="x.png"`)
}

// A thumbnail has the sizes of the configuration, is of a picture, and is for those who may read the file.
func TestThumbnailsThatThereAreNot(t *testing.T) {
	t.Parallel()
	l := startPictures(t)
	path, _ := l.add("covers", photograph())
	for _, size := range []string{"", "9x7", "9x", "x", "20x0", "20", "9x6&thumb=9x6", "09x6", "9x6x", "9X6", "-9x6", "1e1x"} {
		r := l.Do("GET", path+"?thumb="+size, "").Want(400)
		if !strings.Contains(r.Text, "9x6, 20x") {
			t.Errorf("%s: %s", size, r.Text)
		}
	}
	text, _ := l.add("covers", "<svg/>", "Content-Type", "image/svg+xml")
	if r := l.Do("GET", text+"?thumb=9x6", "").Want(415); !strings.Contains(r.Text, "no JPEG, PNG, GIF or WebP") {
		t.Error(r.Text)
	}
	l.Do("GET", text, "").Want(200)
	for place, want := range map[string]int{"Locked/emma": 401, "Hidden/emma": 404, "Concealed/emma": 404, "Books/emm": 404} {
		l.Do("GET", "/files/"+place+"/covers/0?thumb=9x6", "").Want(want)
	}
	l.Do("GET", "/files/Books/emma/covers/7?thumb=9x6", "").Want(404)
	without := startLibrary(t)
	path, _ = without.add("covers", photograph())
	if r := without.Do("GET", path+"?thumb=90x90", "").Want(400); !strings.Contains(r.Text, "no thumbnails") {
		t.Error(r.Text)
	}
}
