package thumbnail

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/jpeg"
	"image/png"
	"runtime"
	"testing"

	"belfry/pkg/errs"
)

// chunk is a part of a PNG.
func chunk(name string, data ...byte) []byte {
	c := append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), name...)
	c = append(c, data...)
	return binary.BigEndian.AppendUint32(c, crc32.ChecksumIEEE(c[4:]))
}

// within adds segments of a JPEG, or chunks of a PNG, after so many bytes of a picture.
func within(picture []byte, at int, more ...byte) []byte {
	return bytes.Join([][]byte{picture[:at], more, picture[at:]}, nil)
}

// fastPNG is a PNG of a picture of one color.
func fastPNG(t *testing.T, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, m))
	return b.Bytes()
}

// A picture takes no more memory than was reserved for it: whatever it says of itself, decoders believe the same.
func TestPicturesTakeTheMemoryThatIsReserved(t *testing.T) {
	const header = 33 // bytes of a PNG before its first other chunk
	gray := fastPNG(t, image.NewGray(image.Rect(0, 0, 2000, 2000)))
	gray16 := fastPNG(t, image.NewGray16(image.Rect(0, 0, 1500, 1500)))
	transparent := chunk("tRNS", 0, 0)
	photo := plainJPEG(0xc2, 128, 128, 255)
	large := bytes.Replace(photo, frame(0xc2, 8, 8, 3), frame(0xc2, 1200, 1200, 3), 1)
	decoy := frame(0xc0, 1200, 1200, 1)
	// A restart marker has no length: the decoder reads on, and who takes the next bytes for one lands in a comment.
	hidden := func(marker byte) []byte {
		const length = 0xffe2 // as which the next marker would be read
		comment := segment(0xe2, append(make([]byte, length-4), decoy...)...)
		return within(large, 2, append([]byte{0xff, marker}, comment...)...)
	}
	var rgb bytes.Buffer
	must(t, jpeg.Encode(&rgb, image.NewRGBA(image.Rect(0, 0, 2000, 2000)), nil))
	named := bytes.Clone(rgb.Bytes())
	frameAt := bytes.Index(named, []byte{0xff, 0xc0})
	named[frameAt+10], named[frameAt+13], named[frameAt+16] = 'R', 'G', 'B'
	scanAt := bytes.Index(named, []byte{0xff, 0xda})
	named[scanAt+5], named[scanAt+7], named[scanAt+9] = 'R', 'G', 'B'
	adobe := segment(0xee, []byte("Adobe\x00\x64\x00\x00\x00\x00\x00")...)
	unnamed := rgb.Bytes()

	for name, x := range map[string]struct {
		data []byte
		size string
	}{
		"gray with a transparent one":           {within(gray, header, transparent...), "90x90"},
		"deep gray with a transparent one":      {within(gray16, header, transparent...), "90x90"},
		"a photo with a frame in a comment":     {hidden(0xd0), "90x90"},
		"a photo with a frame after an escape":  {hidden(0x00), "90x90"},
		"a photo with colors that are named":    {named, "90x90"},
		"a photo with colors as Adobe has them": {within(unnamed, 2, adobe...), "90x90"},
		"a photo with Adobe's colors at last":   {within(unnamed, len(unnamed)-2, adobe...), "90x90"},
		"a photo of a column": {bytes.Replace(photo, frame(0xc2, 8, 8, 3), frame(0xc2, 1, 65535, 3), 1),
			"90x90"},
		"a row":    {fastPNG(t, image.NewGray(image.Rect(0, 0, 1<<20, 1))), "90x"},
		"few rows": {fastPNG(t, image.NewGray(image.Rect(0, 0, 1<<17, 16))), "90x"},
		"a column": {fastPNG(t, image.NewGray(image.Rect(0, 0, 40, 60_000))), "40x"},
	} {
		s, err := ParseSize(x.size)
		must(t, err)
		var reserved int64
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = Make(t.Context(), x.data, s, func(n int64) (func(), error) { reserved = n; return func() {}, nil })
		runtime.ReadMemStats(&after)
		if took := int64(after.TotalAlloc - before.TotalAlloc); took > reserved+4<<20 {
			t.Errorf("%s takes %d MiB of %d, %v", name, took>>20, reserved>>20, err)
		}
	}
}

// Thumbnails that can't be encoded, or take too much themselves, are refused before the picture is decoded.
func TestLongPicturesHaveNoLongThumbnails(t *testing.T) {
	for name, x := range map[string]struct {
		w, h int
		size string
	}{
		"a row":          {64 << 20, 1, "1200x"},
		"a long column":  {1, 64 << 20, "1200x"},
		"a row as high":  {64 << 20, 1, "x600"},
		"a broad column": {1200, 50_000, "1200x"},
	} {
		s, err := ParseSize(x.size)
		must(t, err)
		picture := claimed(fastPNG(t, image.NewGray(image.Rect(0, 0, 1, 1))), uint32(x.w), uint32(x.h))
		_, err = Make(t.Context(), picture, s, func(n int64) (func(), error) {
			t.Errorf("%s: %d MiB are reserved", name, n>>20)
			return func() {}, nil
		})
		if errs.KindOf(err) != errs.Unsupported {
			t.Errorf("%s: %v", name, err)
		}
	}
}
