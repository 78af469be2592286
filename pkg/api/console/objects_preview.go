package console

import (
	"bufio"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"belfry/pkg/binary"
	"belfry/pkg/httpkit"
)

// Bounds of previews.
const (
	maxPreview  = 10 << 20 // bytes of a file that is shown
	maxPreviews = 24       // pictures of a page
	sniffed     = 512      // bytes by which a type is judged
)

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
	if record.Size > maxPreview {
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
	r.SetHeader("Content-Security-Policy", filePolicy)
	r.SetHeader("X-Content-Type-Options", "nosniff")
	r.SetHeader("Cross-Origin-Resource-Policy", "same-origin")
	r.SetHeader("Content-Type", kind)
	r.SetHeader("Content-Length", strconv.FormatInt(record.Size, 10))
	r.SetHeader("Content-Disposition", "inline")
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
