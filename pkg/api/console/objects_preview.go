package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"belfry/internal/thumbnail"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// Bounds of previews.
const (
	maxPreview  = 10 << 20 // bytes of a file that is shown
	maxPreviews = 24       // pictures of a page
	sniffed     = 512      // bytes by which a type is judged

	maxWhole = 2 << 20 // bytes of a picture that a page has as it is, since there is no thumbnail of it
)

// smallPreview is the size of pictures in pages, twice that of their place, for fine screens.
var smallPreview = thumbnail.Size{Width: 192, Height: 192}

// pictures are the types of files that pages show. Others could contain scripts, or links.
var pictures = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"}

// plainText is the type of files that can be opened as a text.
const plainText = "text/plain; charset=utf-8"

// previewable reports whether a file could be shown by what its uploader says about it: as a picture or as a text. The
// preview itself judges by its content.
func previewable(record binary.Record) (picture, text bool) {
	kind, _, err := mime.ParseMediaType(record.Mimetype)
	if err != nil || record.Size > maxPreview || record.Size == 0 {
		return false, false
	}
	return slices.Contains(pictures, kind), strings.HasPrefix(kind, "text/") || kind == "application/json"
}

// shownAs returns the type as which the content of a file that begins so may be shown; "" for none. A page of HTML, or
// a picture with scripts, is a text at most.
func shownAs(start []byte) string {
	kind := http.DetectContentType(start)
	switch {
	case slices.Contains(pictures, kind):
		return kind
	case len(start) >= 12 && (string(start[4:12]) == "ftypavif" || string(start[4:12]) == "ftypavis"):
		return "image/avif"
	case strings.HasPrefix(kind, "text/") && !strings.Contains(kind, "utf-16"):
		return plainText
	}
	return ""
}

// preview sends a picture or a text to be shown, from an origin of its own, without scripts.
func (v *objectsView) preview(r *request) error {
	service, place, err := v.file(r, true)
	if err != nil {
		return err
	}
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	record, err := service.Get(ctx, place)
	if err != nil {
		return err
	}
	most := int64(maxPreview)
	if r.Query("small") != "" {
		if done, err := v.small(ctx, r, service, record); done || err != nil {
			return err
		}
		most = maxWhole
	}
	if record.Size > most {
		return notFound("the file is too large to be shown: download it")
	}
	content, err := service.Open(ctx, record.Hash, 0, -1)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }() // what has been read is checked by then
	read := bufio.NewReaderSize(content, sniffed)
	start, err := read.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	kind := shownAs(start)
	if kind == "" {
		return notFound("the file is neither a picture nor a text that can be shown: download it")
	}
	r.showFile(kind, record.Size)
	// If the connection does not support deadlines, the server's deadline applies.
	_ = http.NewResponseController(r.Exchange).SetWriteDeadline(time.Now().Add(transferTime))
	r.WriteHeader(http.StatusOK)
	if r.Request.Method == http.MethodHead {
		return nil
	}
	httpkit.Reads(r.Context())
	if _, err := io.Copy(r.Exchange, read); err != nil {
		r.RecordError(err)
	}
	return nil
}

// small sends the thumbnail of a file, if it can be made.
func (v *objectsView) small(ctx context.Context, r *request, service *binary.Service, record binary.Record) (done bool,
	err error) {
	if v.thumbnails == nil {
		return false, nil
	}
	picture, err := v.thumbnails.Get(ctx, service, record, smallPreview)
	if errs.KindOf(err) == errs.Unsupported {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.showFile(picture.Type, int64(len(picture.Data)))
	r.WriteHeader(http.StatusOK)
	if r.Request.Method != http.MethodHead {
		_, err = r.Write(picture.Data)
		r.RecordError(err)
	}
	return true, nil
}

// showFile sets the headers of a file that a page shows.
func (r *request) showFile(kind string, size int64) {
	r.SetHeader("Content-Security-Policy", filePolicy)
	r.SetHeader("X-Content-Type-Options", "nosniff")
	r.SetHeader("Cross-Origin-Resource-Policy", "same-origin")
	r.SetHeader("Content-Type", kind)
	r.SetHeader("Content-Length", strconv.FormatInt(size, 10))
	r.SetHeader("Content-Disposition", "inline")
}

// shownFile is a file of an object as its page shows it.
type shownFile struct {
	binary.Record
	Index         int
	Picture, Text bool // it has a preview
}

// shownFiles are the files of an object's page, of which the first pictures have previews.
func shownFiles(all []fileList) {
	left := maxPreviews
	for i := range all {
		for n, record := range all[i].Records {
			f := shownFile{Record: record, Index: n}
			if f.Picture, f.Text = previewable(record); f.Picture {
				f.Picture = left > 0
				left--
			}
			all[i].Shown = append(all[i].Shown, f)
		}
	}
}

// picture makes a cell with files one with the first picture of them, if there is one.
func (c *gridCell) picture(store, uuid string, value json.RawMessage) {
	var records []binary.Record
	if len(value) == 0 || value[0] != '[' || json.Unmarshal(value, &records) != nil {
		return
	}
	for i, record := range records {
		if picture, _ := previewable(record); picture {
			c.Kind, c.More, c.Text = "picture", len(records)-1, shorten(record.Name, maxCell)
			c.Preview = pathOf("objects", store, "object", uuid, "files", c.Field, strconv.Itoa(i), "preview") +
				"?small=true"
			return
		}
	}
}
