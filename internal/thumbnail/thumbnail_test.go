package thumbnail

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/color/palette"
	"image/gif"
	"runtime"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
)

func free(int64) (func(), error) { return func() {}, nil }

// made makes a thumbnail, and decodes it.
func made(t *testing.T, data []byte, size string) (image.Image, string) {
	t.Helper()
	s, err := ParseSize(size)
	must(t, err)
	p, err := Make(t.Context(), data, s, free)
	must(t, err)
	m, format, err := image.Decode(bytes.NewReader(p.Data))
	must(t, err)
	if "image/"+format != p.Type {
		t.Errorf("%s is %s", p.Type, format)
	}
	return m, p.Type
}

// near reports whether colors are about the same: JPEG loses a little.
func near(a, b color.Color) bool {
	distance := func(x, y uint32) bool { return max(x, y)-min(x, y) < 0x1400 }
	r, g, bl, al := a.RGBA()
	r2, g2, bl2, al2 := b.RGBA()
	return distance(r, r2) && distance(g, g2) && distance(bl, bl2) && distance(al, al2)
}

// hasCorners checks the middles of the quarters.
func hasCorners(t *testing.T, name string, m image.Image, want [4]color.RGBA) {
	t.Helper()
	b := m.Bounds()
	for i, c := range want {
		x, y := b.Dx()*(1+2*(i%2))/4, b.Dy()*(1+2*(i/2))/4
		if got := m.At(b.Min.X+x, b.Min.Y+y); !near(got, c) {
			t.Errorf("%s: at %d, %d is %v, want %v", name, x, y, got, c)
		}
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	picture := pngOf(t, quarters(400, 300))
	for size, want := range map[string]image.Point{
		"90x90": {90, 90}, "200x100": {200, 100}, "100x200": {100, 200}, "80x": {80, 60}, "x60": {80, 60}, "1x": {1, 1},
		"1x1": {1, 1}, "x1": {1, 1}, "4096x": {400, 300}, "400x300": {400, 300}, "1000x1000": {300, 300},
		"4000x10": {400, 1}, "7x11": {7, 11}, "399x": {399, 299},
	} {
		m, _ := made(t, picture, size)
		if got := m.Bounds().Size(); got != want {
			t.Errorf("%s: %v, want %v", size, got, want)
		}
		if min(want.X, want.Y) > 8 {
			hasCorners(t, size, m, corners)
		}
	}
	for _, text := range []string{"", "x", "0x1", "1x0", "01x1", "-1x1", "1X1", "1x1x1", "5000x", "99999x", "1", "1.5x", " 1x", "１x"} {
		if s, err := ParseSize(text); err == nil {
			t.Errorf("%q is %v", text, s)
		}
	}
	for _, text := range []string{"90x60", "800x", "x600"} {
		if s, err := ParseSize(text); err != nil || s.String() != text {
			t.Errorf("%s is %v, %v", text, s, err)
		}
	}
}

// A thumbnail shows the mean of the pixels, not some of them.
func TestPixelsAreMeans(t *testing.T) {
	t.Parallel()
	m := image.NewGray(image.Rect(0, 0, 300, 200))
	for i := range m.Pix {
		if (i+i/300)%2 == 0 {
			m.Pix[i] = 255
		}
	}
	got, _ := made(t, pngOf(t, m), "30x20")
	for y := range 20 {
		for x := range 30 {
			if !near(got.At(x, y), color.Gray{128}) {
				t.Fatalf("at %d, %d is %v", x, y, got.At(x, y))
			}
		}
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	half := image.NewNRGBA(image.Rect(0, 0, 40, 30))
	for i := range half.Pix {
		half.Pix[i] = 128
	}
	if m, kind := made(t, pngOf(t, half), "20x"); kind != "image/png" || !near(m.At(3, 3), color.NRGBA{128, 128, 128, 128}) {
		t.Errorf("transparent: %s %v", kind, m.At(3, 3))
	}
	if m, kind := made(t, jpegOf(t, quarters(40, 30)), "20x"); kind != "image/jpeg" {
		t.Errorf("JPEG: %s", kind)
	} else {
		hasCorners(t, "JPEG", m, corners)
	}
	m, _ := made(t, animated(t), "200x150")
	hasCorners(t, "the first picture of an animation", m, corners)
	for name, x := range map[string]struct {
		data []byte
		want color.Color
	}{
		"CMYK":             {plainJPEG(0xc0, 255, 1, 1, 255), color.RGBA{255, 0, 0, 255}},
		"progressive":      {plainJPEG(0xc2, 128, 128, 255), color.RGBA{255, 37, 128, 255}},
		"baseline":         {plainJPEG(0xc0, 200, 128, 128), color.Gray{200}},
		"WebP, lossless":   {losslessWebP, nil},
		"WebP with losses": {lossyWebP, nil},
	} {
		m, _ := made(t, x.data, "4x4")
		if x.want != nil && !near(m.At(1, 1), x.want) {
			t.Errorf("%s: %v, want %v", name, m.At(1, 1), x.want)
		}
	}
}

func TestPicturesAreUpright(t *testing.T) {
	t.Parallel()
	r, g, b, w := corners[0], corners[1], corners[2], corners[3]
	for o, want := range map[byte][4]color.RGBA{
		1: {r, g, b, w}, 2: {g, r, w, b}, 3: {w, b, g, r}, 4: {b, w, r, g}, 5: {r, b, g, w}, 6: {b, r, w, g},
		7: {w, g, b, r}, 8: {g, w, r, b}, 0: {r, g, b, w}, 9: {r, g, b, w},
	} {
		picture := turned(jpegOf(t, quarters(400, 200)), o)
		for _, size := range []string{"100x", "40x80"} {
			m, _ := made(t, picture, size)
			hasCorners(t, string('0'+rune(o))+" "+size, m, want)
			size := m.Bounds().Size()
			if lies := o >= 5 && o <= 8; size.X == 100 && (size.Y == 200) != lies {
				t.Errorf("%d: %v", o, size)
			}
		}
	}
}

// What can't become a thumbnail is refused with the reason, before its pixels have memory.
func TestHostilePictures(t *testing.T) {
	t.Parallel()
	picture := pngOf(t, quarters(400, 300))
	photo := jpegOf(t, quarters(400, 300))
	var canvas bytes.Buffer
	must(t, gif.EncodeAll(&canvas, &gif.GIF{Image: []*image.Paletted{image.NewPaletted(image.Rect(0, 0, 1, 1),
		palette.WebSafe)}, Delay: []int{0}, Config: image.Config{Width: 65535, Height: 65535}}))
	huge := func(marker byte, w, h, colors int) []byte {
		return bytes.Join([][]byte{{0xff, 0xd8}, frame(marker, w, h, colors), segment(0xda, 0)}, nil)
	}
	for name, x := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":                    {nil, "no JPEG, PNG, GIF or WebP"},
		"a text":                     {[]byte("<svg/>"), "no JPEG, PNG, GIF or WebP"},
		"a truncated picture":        {picture[:len(picture)/2], "can't be read"},
		"a truncated photo":          {photo[:len(photo)/2], "can't be read"},
		"a photo without its pixels": {photo[:30], "can't be read"},
		"a picture of no pixels":     {claimed(picture, 0, 1), "can't be read"},
		"a bomb":                     {claimed(picture, 100_000, 100_000), "100000 x 100000 pixels; at most"},
		"a bomb in a row":            {claimed(picture, 1<<30, 1), "1073741824 x 1 pixels; at most"},
		"a bomb in an animation":     {canvas.Bytes(), "65535 x 65535 pixels; at most"},
		"a large picture":            {claimed(picture, 8000, 8000), "more than 160 MiB"},
		"a large photo":              {huge(0xc0, 8000, 8000, 3), "more than 160 MiB"},
		"a large progressive photo":  {huge(0xc2, 4000, 4000, 3), "more than 160 MiB"},
		"a large photo in CMYK":      {huge(0xc0, 5000, 5000, 4), "more than 160 MiB"},
		"an animated WebP":           {animatedWebP, "can't be read"},
		"a lie about the size":       {claimed(picture, 4000, 4000), "can't be read"},
	} {
		s, err := ParseSize("90x90")
		must(t, err)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := Make(t.Context(), x.data, s, free)
		runtime.ReadMemStats(&after)
		if errs.KindOf(err) != errs.Unsupported || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, %d bytes", name, err, len(p.Data))
		}
		if more := after.TotalAlloc - before.TotalAlloc; more > 2*maxMemory {
			t.Errorf("%s takes %d MiB", name, more>>20)
		}
	}
}

// The memory is reserved before the picture is decoded, and returned.
func TestMemoryIsReserved(t *testing.T) {
	t.Parallel()
	picture, refused := pngOf(t, quarters(1000, 1000)), errs.New(errs.Unavailable, "full")
	var held, most int64
	reserve := func(n int64) (func(), error) {
		held += n
		most = max(most, held)
		return func() { held -= n }, nil
	}
	if _, err := Make(t.Context(), picture, Size{Width: 90}, reserve); err != nil || held != 0 || most < 4_000_000 {
		t.Errorf("%v, %d held, %d at most", err, held, most)
	}
	if _, err := Make(t.Context(), picture, Size{Width: 90}, func(int64) (func(), error) { return nil, refused }); !errors.Is(err,
		refused) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Make(ctx, picture, Size{Width: 90}, reserve); errs.KindOf(err) != errs.Canceled || held != 0 {
		t.Errorf("%v, %d held", err, held)
	}
}

// The first picture of an animation may be a part of what is shown.
func TestAnAnimationIsShownWhole(t *testing.T) {
	red, blue := color.RGBA{255, 0, 0, 255}, color.RGBA{0, 0, 255, 255}
	full := slices.Repeat(color.Palette{blue}, 256)
	full[7] = red
	for name, x := range map[string]struct {
		palette color.Palette
		red     uint8
		around  color.Color
	}{
		"a color is nothing": {color.Palette{red, color.Transparent}, 0, color.Transparent},
		"there is room":      {color.Palette{blue, red, blue, blue}, 1, color.Transparent},
		"there is no room":   {full, 7, blue},
	} {
		part := image.NewPaletted(image.Rect(100, 100, 200, 200), x.palette)
		for i := range part.Pix {
			part.Pix[i] = x.red
		}
		var b bytes.Buffer
		must(t, gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{part}, Delay: []int{0},
			Config: image.Config{ColorModel: x.palette, Width: 200, Height: 200}}))
		m, _ := made(t, b.Bytes(), "100x")
		if got := m.Bounds(); got.Dx() != 100 || got.Dy() != 100 {
			t.Errorf("%s: %v", name, got)
		}
		if at := m.At(75, 75); !near(at, red) {
			t.Errorf("%s: the picture is %v", name, at)
		}
		if at := m.At(25, 25); !near(at, x.around) {
			t.Errorf("%s: around it is %v", name, at)
		}
	}
}

func TestDraws(t *testing.T) {
	for media, want := range map[string]bool{"image/png": true, "image/apng": true, "image/jpg": true,
		`image/PNG; charset="a b"`: true, "image/webp": true, "image/avif": false, "image/svg+xml": false, "": false} {
		if Draws(media) != want {
			t.Errorf("%s: %t", media, !want)
		}
	}
}
