package thumbnail

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"
)

// quarters is a picture of red and green above blue and white.
func quarters(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetRGBA(x, y, corners[2*(2*y/h)+2*x/w])
		}
	}
	return m
}

var corners = [4]color.RGBA{{255, 0, 0, 255}, {0, 255, 0, 255}, {0, 0, 255, 255}, {255, 255, 255, 255}}

func jpegOf(t testing.TB, m image.Image) []byte {
	var b bytes.Buffer
	must(t, jpeg.Encode(&b, m, &jpeg.Options{Quality: 95}))
	return b.Bytes()
}

func pngOf(t testing.TB, m image.Image) []byte {
	var b bytes.Buffer
	must(t, png.Encode(&b, m))
	return b.Bytes()
}

// animated is a GIF that begins with quarters, and ends with black.
func animated(t testing.TB) []byte {
	first := image.NewPaletted(image.Rect(0, 0, 400, 300), palette.WebSafe)
	for y, m := 0, quarters(400, 300); y < 300; y++ {
		for x := range 400 {
			first.Set(x, y, m.At(x, y))
		}
	}
	var b bytes.Buffer
	must(t, gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{first, image.NewPaletted(first.Rect, palette.WebSafe)},
		Delay: []int{1, 1}}))
	return b.Bytes()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// segment is a part of a JPEG.
func segment(marker byte, data ...byte) []byte {
	return append([]byte{0xff, marker, byte((len(data) + 2) >> 8), byte(len(data) + 2)}, data...)
}

// turned is a JPEG with an orientation in its EXIF.
func turned(picture []byte, o byte) []byte {
	exif := append([]byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00"), o, 0, 0, 0, 0, 0, 0)
	return bytes.Join([][]byte{picture[:2], segment(0xe1, exif...), picture[2:]}, nil)
}

// frame is the frame of a JPEG of three or four colors that are all as large.
func frame(marker byte, w, h, colors int) []byte {
	f := []byte{8, byte(h >> 8), byte(h), byte(w >> 8), byte(w), byte(colors)}
	for i := range colors {
		f = append(f, byte(i+1), 0x11, 0)
	}
	return segment(marker, f...)
}

// plainJPEG is a JPEG of 8 x 8 pixels of one color, baseline (0xc0) or progressive (0xc2), with the values of its
// components from 1 to 255.
func plainJPEG(marker byte, values ...byte) []byte {
	var scan []byte
	scan = append(scan, byte(len(values)))
	for i := range values {
		scan = append(scan, byte(i+1), 0)
	}
	last := byte(63)
	if marker == 0xc2 {
		last = 0 // its first coefficients only
	}
	var bits []byte // one each
	for _, v := range values {
		n := int(v) - 128
		size := 0
		for m := max(n, -n); m > 0; m >>= 1 {
			size++
		}
		for i := 3; i >= 0; i-- { // the code of a size is the size, in four bits
			bits = append(bits, byte(size>>i)&1)
		}
		if n < 0 {
			n += 1<<size - 1
		}
		for i := size - 1; i >= 0; i-- {
			bits = append(bits, byte(n>>i)&1)
		}
		if marker == 0xc0 {
			bits = append(bits, 0) // nothing else in the block
		}
	}
	var coded []byte
	for len(bits)%8 != 0 {
		bits = append(bits, 1)
	}
	for i := 0; i < len(bits); i += 8 {
		var b byte
		for _, bit := range bits[i : i+8] {
			b = b<<1 | bit
		}
		if coded = append(coded, b); b == 0xff {
			coded = append(coded, 0)
		}
	}
	sizes := append([]byte{0x00, 0, 0, 0, 9}, make([]byte, 12)...) // nine codes of four bits
	sizes = append(sizes, 0, 1, 2, 3, 4, 5, 6, 7, 8)
	rest := append([]byte{0x10, 1}, make([]byte, 16)...) // the code 0 ends a block
	parts := [][]byte{{0xff, 0xd8}}
	if len(values) == 4 {
		parts = append(parts, segment(0xee, []byte("Adobe\x00\x64\x00\x00\x00\x00\x00")...)) // CMYK, inverted
	}
	parts = append(parts, segment(0xdb, append([]byte{0}, bytes.Repeat([]byte{8}, 64)...)...),
		frame(marker, 8, 8, len(values)), segment(0xc4, sizes...), segment(0xc4, rest...),
		segment(0xda, append(scan, 0, last, 0)...), coded, []byte{0xff, 0xd9})
	return bytes.Join(parts, nil)
}

// claimed is a PNG whose header says another size.
func claimed(data []byte, w, h uint32) []byte {
	data = bytes.Clone(data)
	binary.BigEndian.PutUint32(data[16:], w)
	binary.BigEndian.PutUint32(data[20:], h)
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	return data
}

func decoded(text string) []byte {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return data
}

// Pictures of one pixel.
var (
	losslessWebP = decoded("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
	lossyWebP    = decoded("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
	animatedWebP = []byte("RIFF\x2e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x27\x00\x00\x1d\x00\x00ANIM\x06\x00\x00\x00" +
		"\x00\x00\x00\x00\x00\x00ANMF\x00\x00\x00\x00")
)
