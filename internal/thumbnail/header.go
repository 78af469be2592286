package thumbnail

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"strings"

	"golang.org/x/image/webp"

	"belfry/internal/mediatype"
	"belfry/pkg/errs"
)

// header is what a picture says of itself before it is decoded.
type header struct {
	format format
	image.Config
	perPixel int // bytes while it is decoded
}

// format is how a picture is encoded.
type format struct {
	name         string
	decodeConfig func(io.Reader) (image.Config, error)
	decode       func(io.Reader) (image.Image, error)
}

// formats are those that are read, by how a file of them begins, with their registered media types.
var formats = []struct {
	start string
	types []string
	format
}{
	{"\xff\xd8\xff", []string{"image/jpeg"}, format{"JPEG", jpeg.DecodeConfig, jpeg.Decode}},
	{"\x89PNG\r\n\x1a\n", []string{"image/png", "image/apng"}, format{"PNG", png.DecodeConfig, png.Decode}},
	{"GIF8", []string{"image/gif"}, format{"GIF", gif.DecodeConfig, gif.Decode}}, // the first picture of an animation
	{"RIFF", []string{"image/webp"}, format{"WebP", webp.DecodeConfig, webp.Decode}},
}

// Draws reports whether thumbnails are made of pictures of a media type, which may have parameters.
func Draws(media string) bool {
	media, _, _ = strings.Cut(media, ";")
	media = mediatype.Registered(strings.ToLower(strings.TrimSpace(media)))
	for _, f := range formats {
		if slices.Contains(f.types, media) {
			return true
		}
	}
	return false
}

// readHeader reads the header of a picture: Unsupported if it can't be read, or says that it is too large.
func readHeader(data []byte) (h header, err error) {
	for _, f := range formats {
		if bytes.HasPrefix(data, []byte(f.start)) {
			h.format = f.format
		}
	}
	if h.format.name == "" {
		return h, errs.New(errs.Unsupported, "there is no thumbnail: the file is no JPEG, PNG, GIF or WebP")
	}
	if h.Config, err = h.format.decodeConfig(bytes.NewReader(data)); err != nil {
		return h, broken(err)
	}
	pixels := int64(h.Width) * int64(h.Height)
	if h.Width <= 0 || h.Height <= 0 || pixels > maxPixels {
		return h, errs.New(errs.Unsupported,
			"there is no thumbnail: the picture has %d x %d pixels; at most %d are read", h.Width, h.Height, maxPixels)
	}
	h.perPixel = h.bytesPerPixel(data)
	if h.memory() > maxMemory {
		return h, errs.New(errs.Unsupported, "there is no thumbnail: to decode the picture, %d x %d pixels of %s, "+
			"takes more than %d MiB", h.Width, h.Height, h.format.name, maxMemory>>20)
	}
	return h, nil
}

// memory is how many bytes the picture takes at most while it is decoded.
func (h *header) memory() int64 {
	w, height := int64(h.Width), int64(h.Height)
	switch h.format.name {
	case "JPEG": // it is decoded in blocks, up to 32 pixels wide and high
		w, height = (w+31)&^31, (height+31)&^31
	case "PNG": // the row that is read, and the one before it
		height += 2
	}
	return w*height*int64(h.perPixel) + 1<<20
}

func (h *header) decode(data []byte) (image.Image, error) {
	m, err := h.format.decode(bytes.NewReader(data))
	if part, ok := m.(*image.Paletted); ok && err == nil {
		return onCanvas(part, image.Rect(0, 0, h.Width, h.Height)), nil
	}
	return m, err
}

// onCanvas returns a picture with nothing around it: the first one of an animation may be a part of what is shown.
func onCanvas(part *image.Paletted, whole image.Rectangle) *image.Paletted {
	if part.Rect == whole {
		return part
	}
	m := image.NewPaletted(whole, slices.Clip(part.Palette))
	nothing := slices.IndexFunc(m.Palette, func(c color.Color) bool { _, _, _, a := c.RGBA(); return a == 0 })
	if nothing < 0 && len(m.Palette) < 256 {
		nothing, m.Palette = len(m.Palette), append(m.Palette, color.Transparent)
	}
	if nothing > 0 { // without a color to spare, the first one is around it
		for i := range m.Pix {
			m.Pix[i] = uint8(nothing) //nolint:gosec // a palette has 256 colors at most
		}
	}
	for y := part.Rect.Min.Y; y < part.Rect.Max.Y; y++ {
		copy(m.Pix[m.PixOffset(part.Rect.Min.X, y):], part.Pix[part.PixOffset(part.Rect.Min.X, y):][:part.Rect.Dx()])
	}
	return m
}

// bytesPerPixel is how many bytes the decoder of a format holds at most for a pixel.
func (h *header) bytesPerPixel(data []byte) int {
	switch h.format.name {
	case "JPEG":
		return jpegBytesPerPixel(data)
	case "GIF":
		return 3 // the picture, its rows in turn, and what is around it
	case "WebP":
		return 12 // a picture without losses has its transforms, one with them a plane for transparency
	}
	of := 4
	switch h.ColorModel {
	case color.NRGBA64Model, color.RGBA64Model:
		of = 8
	case color.GrayModel:
		of = channels(data)
	case color.Gray16Model:
		of = 2 * channels(data)
	default:
		if _, palette := h.ColorModel.(color.Palette); palette {
			of = 1
		}
	}
	const interlace = 28 // the byte of a PNG that says that it is
	if len(data) > interlace && data[interlace] != 0 {
		of *= 2 // it is put together from seven pictures
	}
	return of
}

// channels is 1, or 4 for a gray PNG in which one gray is transparent: its pixels are decoded to colors.
func channels(data []byte) int {
	if bytes.Contains(data, []byte("tRNS")) {
		return 4
	}
	return 1
}
