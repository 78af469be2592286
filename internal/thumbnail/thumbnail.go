package thumbnail

import (
	"bytes"
	"context"
	"image"
	"image/jpeg"
	"image/png"

	"belfry/pkg/errs"
)

// Bounds of a picture of which thumbnails are made.
const (
	MaxBytes  = 32 << 20 // of the file
	maxPixels = 64 << 20
	maxMemory = 160 << 20 // of the decoded picture
)

const quality = 82

// Picture is a thumbnail.
type Picture struct {
	Data []byte
	Type string // image/jpeg; image/png if the picture is transparent somewhere
}

// Kept returns the thumbnail whose data was kept.
func Kept(data []byte) (Picture, error) {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xd8")):
		return Picture{data, "image/jpeg"}, nil
	case bytes.HasPrefix(data, []byte("\x89PNG")):
		return Picture{data, "image/png"}, nil
	}
	return Picture{}, errs.New(errs.NotFound, "what was kept is no thumbnail")
}

// Extension is how the name of a file of this type ends.
func (p Picture) Extension() string {
	if p.Type == "image/png" {
		return ".png"
	}
	return ".jpg"
}

// Reserve reserves memory for a picture until release is called. Its error refuses.
type Reserve func(bytes int64) (release func(), err error)

// Make makes the thumbnail of a picture. Unsupported if that is impossible: it is no picture that can be read, it
// is broken, or it is too large. Errors of reserve are returned as they are.
func Make(ctx context.Context, data []byte, s Size, reserve Reserve) (Picture, error) {
	h, err := readHeader(data)
	if err != nil {
		return Picture{}, err
	}
	release, err := reserve(h.memory())
	if err != nil {
		return Picture{}, err
	}
	defer release()
	source, err := h.decode(data)
	if err != nil {
		return Picture{}, broken(err)
	}
	if source.Bounds().Empty() {
		return Picture{}, errs.New(errs.Unsupported, "there is no thumbnail: the picture has no pixels")
	}
	o := orientationOf(h.format, data)
	if o.turns() {
		s = s.turned()
	}
	from, width, height := s.of(source.Bounds())
	small, err := shrink(ctx, source, from, width, height)
	if err != nil {
		return Picture{}, err
	}
	return encode(o.apply(small))
}

func encode(m *image.RGBA) (Picture, error) {
	var b bytes.Buffer
	if m.Opaque() {
		err := jpeg.Encode(&b, m, &jpeg.Options{Quality: quality})
		return Picture{b.Bytes(), "image/jpeg"}, errs.Wrap(err, errs.Internal, "encoding a thumbnail")
	}
	err := png.Encode(&b, m)
	return Picture{b.Bytes(), "image/png"}, errs.Wrap(err, errs.Internal, "encoding a thumbnail")
}

func broken(err error) error {
	return errs.Wrap(err, errs.Unsupported, "there is no thumbnail: the picture can't be read")
}
