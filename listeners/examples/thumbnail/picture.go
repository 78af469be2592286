package main

import (
	"bytes"
	"fmt"
	"image"
	_ "image/gif" // read too; of an animation the first picture
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // read too
)

const (
	quality = 85
	maxSide = 30_000 // scaling needs room for each pixel of a side, many times over
)

// limits are those of pictures.
type limits struct {
	side   int // the longer one of a thumbnail
	pixels int // of a picture at most: a file of a few kilobytes may hold billions
}

// picture is a file.
type picture struct {
	data      []byte
	mimetype  string
	extension string
}

// shrink makes a small picture. An error is permanent.
func shrink(data []byte, l limits) (picture, error) {
	size, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return picture{}, fmt.Errorf("not a readable picture: %w", err)
	}
	if w, h := size.Width, size.Height; w < 1 || h < 1 || max(w, h) > maxSide || w > l.pixels/h {
		return picture{}, fmt.Errorf("a picture of %d x %d is too large: at most %d pixels, and %d a side", w, h,
			l.pixels, maxSide)
	}
	from, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return picture{}, fmt.Errorf("the picture in format %s is invalid or incomplete: %w", format, err)
	}
	to := image.NewRGBA(fit(from.Bounds(), l.side))
	draw.CatmullRom.Scale(to, to.Bounds(), from, from.Bounds(), draw.Src, nil)
	var out bytes.Buffer
	if to.Opaque() {
		err = jpeg.Encode(&out, to, &jpeg.Options{Quality: quality})
		return picture{out.Bytes(), "image/jpeg", ".jpg"}, err
	}
	err = png.Encode(&out, to)
	return picture{out.Bytes(), "image/png", ".png"}, err
}

// fit is the size that a picture is shrunk to; one that is small keeps its own.
func fit(of image.Rectangle, side int) image.Rectangle {
	w, h := of.Dx(), of.Dy()
	if longer := max(w, h); longer > side {
		w, h = max(1, w*side/longer), max(1, h*side/longer)
	}
	return image.Rect(0, 0, w, h)
}
