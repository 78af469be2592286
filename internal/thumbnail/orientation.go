package thumbnail

import (
	"bytes"
	"image"

	"github.com/bep/imagemeta"
)

// orientation is how a picture is turned, as EXIF counts: 1 is upright.
type orientation int

// orientationOf reads how a picture is turned. Pictures whose metadata can't be read are upright.
func orientationOf(f format, data []byte) orientation {
	kind := map[string]imagemeta.ImageFormat{
		"JPEG": imagemeta.JPEG, "PNG": imagemeta.PNG, "WebP": imagemeta.WebP,
	}[f.name]
	if kind == 0 {
		return 1
	}
	found := orientation(1)
	isOrientation := func(tag imagemeta.TagInfo) bool { return tag.Tag == "Orientation" && tag.Namespace == "IFD0" }
	_, _ = imagemeta.Decode(imagemeta.Options{ // without it, or with half of it, the picture is shown as it is stored
		R: bytes.NewReader(data), ImageFormat: kind, Sources: imagemeta.EXIF, ShouldHandleTag: isOrientation,
		HandleTag: func(tag imagemeta.TagInfo) error {
			if n, ok := tag.Value.(uint16); ok && isOrientation(tag) && n >= 1 && n <= 8 {
				found = orientation(n)
			}
			return nil
		},
	})
	return found
}

// turns reports whether width and height change places.
func (o orientation) turns() bool { return o >= 5 }

// apply returns a picture the right way up.
func (o orientation) apply(m *image.RGBA) *image.RGBA {
	if o == 1 {
		return m
	}
	w, h := m.Rect.Dx(), m.Rect.Dy()
	to := image.Rect(0, 0, w, h)
	if o.turns() {
		to = image.Rect(0, 0, h, w)
	}
	upright := image.NewRGBA(to)
	for y := range to.Dy() {
		for x := range to.Dx() {
			fromX, fromY := x, y
			switch o {
			case 2:
				fromX = w - 1 - x
			case 3:
				fromX, fromY = w-1-x, h-1-y
			case 4:
				fromY = h - 1 - y
			case 5:
				fromX, fromY = y, x
			case 6:
				fromX, fromY = y, h-1-x
			case 7:
				fromX, fromY = w-1-y, h-1-x
			case 8:
				fromX, fromY = w-1-y, x
			}
			copy(upright.Pix[upright.PixOffset(x, y):][:4], m.Pix[m.PixOffset(fromX, fromY):][:4])
		}
	}
	return upright
}
