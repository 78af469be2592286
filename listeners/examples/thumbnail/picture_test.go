package main

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

var few = limits{side: 64, pixels: 1_000_000}

func painted(w, h int, c color.Color) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			img.Set(x, y, c)
		}
	}
	return img
}

func TestPicturesAreShrunk(t *testing.T) {
	red, glass := color.NRGBA{R: 200, A: 255}, color.NRGBA{R: 200, A: 100}
	encode := map[string]func(*bytes.Buffer, image.Image) error{
		"png":  func(b *bytes.Buffer, i image.Image) error { return png.Encode(b, i) },
		"jpeg": func(b *bytes.Buffer, i image.Image) error { return jpeg.Encode(b, i, nil) },
		"gif":  func(b *bytes.Buffer, i image.Image) error { return gif.Encode(b, i, nil) },
	}
	for _, c := range []struct {
		format   string
		w, h     int
		color    color.Color
		wantW    int
		wantH    int
		mimetype string
	}{
		{"png", 200, 100, red, 64, 32, "image/jpeg"},
		{"jpeg", 100, 200, red, 32, 64, "image/jpeg"},
		{"gif", 128, 128, red, 64, 64, "image/jpeg"},
		{"png", 128, 64, glass, 64, 32, "image/png"},
		{"png", 20, 10, red, 20, 10, "image/jpeg"},
		{"png", 2000, 3, red, 64, 1, "image/jpeg"},
	} {
		var data bytes.Buffer
		if err := encode[c.format](&data, painted(c.w, c.h, c.color)); err != nil {
			t.Fatal(err)
		}
		small, err := shrink(data.Bytes(), few)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		img, format, err := image.Decode(bytes.NewReader(small.data))
		if err != nil || "image/"+format != c.mimetype || small.mimetype != c.mimetype ||
			img.Bounds() != image.Rect(0, 0, c.wantW, c.wantH) {
			t.Errorf("%+v became a %s of %v, %v", c, small.mimetype, img.Bounds(), err)
		}
		if r, g, _, _ := img.At(c.wantW/2, c.wantH/2).RGBA(); r>>8 < 70 || g>>8 > 20 {
			t.Errorf("%+v has changed its colour: %v", c, img.At(0, 0))
		}
	}
}

// sized is a PNG that says it has a size, and holds a pixel.
func sized(t *testing.T, w, h uint32) []byte {
	t.Helper()
	var data bytes.Buffer
	if err := png.Encode(&data, painted(1, 1, color.White)); err != nil {
		t.Fatal(err)
	}
	const header, end = 12, 29 // the chunk IHDR, from its name to its checksum
	b := data.Bytes()
	binary.BigEndian.PutUint32(b[header+4:], w)
	binary.BigEndian.PutUint32(b[header+8:], h)
	binary.BigEndian.PutUint32(b[end:], crc32.ChecksumIEEE(b[header:end]))
	return b
}

func TestUnreadablePicturesAreRejected(t *testing.T) {
	var whole bytes.Buffer
	if err := png.Encode(&whole, painted(100, 100, color.White)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":         {nil, "not a readable picture"},
		"a text":          {[]byte("Emma Woodhouse, handsome, clever, and rich"), "not a readable picture"},
		"half of one":     {whole.Bytes()[:whole.Len()/2], "invalid or incomplete"},
		"many pixels":     {sized(t, 25_000, 25_000), "too large"},
		"a long line":     {sized(t, 900_000, 1), "too large"},
		"sides overflow":  {sized(t, 1<<31-1, 1<<31-1), "not a readable picture"},
		"one that is not": {sized(t, 1000, 1000), "invalid or incomplete"},
	} {
		if _, err := shrink(c.data, few); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
