// Package thumbnail makes small pictures of large ones: of JPEG, PNG, GIF and WebP, within bounds of pixels and memory.
// The smaller picture has no metadata, and is the right way up.
package thumbnail

import (
	"fmt"
	"image"
	"regexp"
	"strconv"
)

// maxSide is the longest side of a thumbnail in pixels.
const maxSide = 4096

// Size is how large a thumbnail is at most. With both sides the picture is cut to their ratio, around its middle; with
// one, 0 stands for the other, which follows. A picture that is smaller stays as large as it is.
type Size struct{ Width, Height int }

var sizeSyntax = regexp.MustCompile(`^([1-9][0-9]{0,3})?x([1-9][0-9]{0,3})?$`)

// ParseSize reads 90x60, 800x or x600.
func ParseSize(text string) (Size, error) {
	parts := sizeSyntax.FindStringSubmatch(text)
	if parts == nil || text == "x" {
		return Size{}, fmt.Errorf("expected a size in pixels: 90x60 cuts to it, 800x has this width, x600 this height")
	}
	var s Size
	s.Width, _ = strconv.Atoi(parts[1]) // digits, or "" for 0
	s.Height, _ = strconv.Atoi(parts[2])
	if max(s.Width, s.Height) > maxSide {
		return Size{}, fmt.Errorf("expected at most %d pixels", maxSide)
	}
	return s, nil
}

func (s Size) String() string {
	side := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	return side(s.Width) + "x" + side(s.Height)
}

// turned is the size for a picture that lies on its side.
func (s Size) turned() Size { return Size{s.Height, s.Width} }

// of returns the part of a picture that a thumbnail shows, and how large it is then.
func (s Size) of(b image.Rectangle) (from image.Rectangle, width, height int) {
	w, h := b.Dx(), b.Dy()
	switch {
	case s.Height == 0:
		width = min(s.Width, w)
		return b, width, scaled(h, width, w)
	case s.Width == 0:
		height = min(s.Height, h)
		return b, scaled(w, height, h), height
	}
	// The largest part of this ratio.
	cutWidth, cutHeight := w, scaled(w, s.Height, s.Width)
	if cutHeight > h {
		cutWidth, cutHeight = min(w, scaled(h, s.Width, s.Height)), h
	}
	x, y := b.Min.X+(w-cutWidth)/2, b.Min.Y+(h-cutHeight)/2
	return image.Rect(x, y, x+cutWidth, y+cutHeight), min(s.Width, cutWidth), min(s.Height, cutHeight)
}

// scaled returns n*by/of, rounded, and at least 1.
func scaled(n, by, of int) int { return max(1, (n*by+of/2)/of) }
