package examples

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	_ "image/jpeg" // thumbnails
	"image/png"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// photos belong to the user who is logged in: the program acts as the user of its
// session.
const photos = `
stores:
  Users: {expose: {url: /users, restrict: {create: true}}}
  Photos: {expose: {}, uuid: client, policy: owner}
authentication:
  providers:
    email: {postValidation: true, skipEmailValidation: true}
binaries:
  binary: {map: {Photos: [pictures, thumbnails]}}
`

type file struct {
	Hash, Mimetype string
	Metadata       struct{ Of string }
}

type photo struct{ Pictures, Thumbnails []file }

// picture returns a PNG of one shade, so that pictures differ.
func picture(t *testing.T, shade int) []byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, 600, 300), color.Palette{color.RGBA{R: uint8(shade), A: 255}})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bomb returns a valid PNG of 400,000,000 black pixels in some 200 KB.
func bomb(t *testing.T) []byte {
	t.Helper()
	const side = 20_000
	var lines bytes.Buffer
	z, err := zlib.NewWriterLevel(&lines, zlib.BestSpeed)
	line := make([]byte, 1+(side+7)/8)
	for range side {
		_, bad := z.Write(line)
		err = errors.Join(err, bad)
	}
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	b := bytes.NewBufferString("\x89PNG\r\n\x1a\n")
	chunk := func(name string, data []byte) {
		_ = binary.Write(b, binary.BigEndian, uint32(len(data)))
		named := append([]byte(name), data...)
		b.Write(named)
		_ = binary.Write(b, binary.BigEndian, crc32.ChecksumIEEE(named))
	}
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, side), side)
	chunk("IHDR", append(header, 1, 0, 0, 0, 0)) // one bit a pixel
	chunk("IDAT", lines.Bytes())
	chunk("IEND", nil)
	return b.Bytes()
}

func TestThumbnail(t *testing.T) {
	w := newFixture(t, photos)
	token := w.register("ada@example.com", "Ada")
	auth := []string{"Authorization", "Bearer " + token}
	w.request(http.MethodPost, "/photos", []byte(`{"uuid":"p"}`), append(auth, "Content-Type", jsonType)...)
	upload := func(data []byte, mimetype string) {
		t.Helper()
		w.request(http.MethodPut, "/binary/upload/Photos/p/pictures/add", data,
			append(auth, "Content-Type", mimetype)...)
	}
	start := func() *child {
		return w.start([]string{"BELFRY_TOKEN=" + token}, program(t, "thumbnail"), "-belfry", w.belfry.URL, "-size",
			"100")
	}
	c := start()
	w.listens("thumbnail")
	upload([]byte("Emma Woodhouse, handsome, clever, and rich"), "image/png")
	upload([]byte("Emma Woodhouse, handsome, clever, and rich, again"), "text/plain")
	upload(bomb(t), "image/png")
	for i := range 6 {
		upload(picture(t, i), "image/png")
	}
	thumbnails := func(n int) func() error {
		return func() error { return atLeast(n, object[photo](w, "/photos/p", auth...).Thumbnails) }
	}
	w.eventually(thumbnails(2))
	c.kill()
	for i := range 6 {
		upload(picture(t, 10+i), "image/png")
	}
	c = start()
	w.eventually(thumbnails(12))
	w.idle("thumbnail")

	// All events again, from the beginning.
	c.stop()
	w.reset("thumbnail")
	c = start()
	w.idle("thumbnail")
	c.stop()

	p := object[photo](w, "/photos/p", auth...)
	var of []string
	for i, f := range p.Thumbnails {
		of = append(of, f.Metadata.Of)
		_, body := w.request(http.MethodGet, fmt.Sprintf("/binary/Photos/p/thumbnails/%d", i), nil, auth...)
		if size, format, err := image.DecodeConfig(bytes.NewReader(body)); err != nil || format != "jpeg" ||
			size.Width != 100 || size.Height != 50 {
			t.Errorf("thumbnail %d is a %s of %d x %d, %v", i, format, size.Width, size.Height, err)
		}
	}
	var want []string
	for _, f := range p.Pictures[3:] {
		want = append(want, f.Hash)
	}
	slices.Sort(of)
	slices.Sort(want)
	if !slices.Equal(of, want) {
		t.Errorf("thumbnails of %v, want %v", of, want)
	}
	reasons := map[string]bool{}
	for _, l := range w.letters("thumbnail") {
		reasons[l.Reason] = true
		if l.Attempts != 1 ||
			!strings.Contains(l.Reason, "not a readable picture") && !strings.Contains(l.Reason, "too large") {
			t.Errorf("unexpected dead letter %+v", l)
		}
	}
	if len(reasons) != 2 {
		t.Errorf("the reasons are %v", reasons)
	}
	if strings.Contains(c.stderr.String(), token) {
		t.Error("its output contains its token")
	}
}

// register registers a user and returns the token of a session.
func (w *fixture) register(login, name string) string {
	w.t.Helper()
	body := fmt.Sprintf(`{"register":true,"login":%q,"password":"correct horse","name":%q}`, login, name)
	header, _ := w.request(http.MethodPost, "/auth/email", []byte(body), "Content-Type", jsonType)
	cookies := (&http.Response{Header: header}).Cookies()
	if len(cookies) != 1 {
		w.t.Fatalf("%d cookies", len(cookies))
	}
	return cookies[0].Value
}
