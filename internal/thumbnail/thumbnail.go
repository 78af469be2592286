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
	maxOwn    = 144 << 20 // of the thumbnail while it is made: the largest one, turned, and rows of the picture
	maxLong   = 1<<16 - 1 // pixels of a side that a JPEG can have
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
	o := orientationOf(h.format, data)
	if o.turns() {
		s = s.turned()
	}
	own, err := s.memory(image.Rect(0, 0, h.Width, h.Height), o)
	if err != nil {
		return Picture{}, err
	}
	release, err := reserve(h.memory() + own)
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
	from, width, height := s.of(source.Bounds())
	small, err := shrink(ctx, source, from, width, height)
	if err != nil {
		return Picture{}, err
	}
	return encode(o.apply(small))
}

// memory is how many bytes the thumbnail of a picture takes at most while it is made. Unsupported if that is too much,
// as of a long strip with one side given.
func (s Size) memory(picture image.Rectangle, o orientation) (int64, error) {
	from, width, height := s.of(picture)
	if max(width, height) > maxLong {
		return 0, errs.New(errs.Unsupported,
			"there is no thumbnail: it would have %d x %d pixels, and a side has at most %d", width, height, maxLong)
	}
	const pixel = 4
	pictures := int64(width) * int64(height) * pixel
	if o != 1 {
		pictures *= 2
	}
	taken := pictures + int64(from.Dx())*int64(min(strip, from.Dy()))*pixel
	if taken > maxOwn {
		return 0, errs.New(errs.Unsupported, "there is no thumbnail: to make one of %d x %d pixels takes more than "+
			"%d MiB", width, height, maxOwn>>20)
	}
	return taken, nil
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
