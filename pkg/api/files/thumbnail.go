package files

import (
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"belfry/internal/thumbnail"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// thumbParam is the parameter with the size of a thumbnail.
const thumbParam = "thumb"

// requestedThumbnail returns the size of the thumbnail that a request is for, if it is for one.
func (h *Handler) requestedThumbnail(x *httpkit.Exchange) (size thumbnail.Size, requested bool, err error) {
	given, requested := x.Query()[thumbParam]
	if !requested {
		return size, false, nil
	}
	if len(given) == 1 {
		if size, err = thumbnail.ParseSize(given[0]); err == nil && slices.Contains(h.thumbs, size) {
			return size, true, nil
		}
	}
	if len(h.thumbs) == 0 {
		return size, true, errs.New(errs.Invalid, "thumb: this service has no thumbnails")
	}
	var sizes []string
	for _, s := range h.thumbs {
		sizes = append(sizes, s.String())
	}
	return size, true, errs.New(errs.Invalid, "thumb: expected one of the sizes %s", strings.Join(sizes, ", "))
}

// getThumbnail is GET and HEAD on a thumbnail of a binary, with the rights for the binary.
func (h *Handler) getThumbnail(x *httpkit.Exchange, size thumbnail.Size) error {
	ctx, record, at, err := h.find(x)
	if err != nil {
		return err
	}
	tag := record.Hash + "-" + size.String()
	changed, err := changed(x, tag, at)
	if err != nil {
		return err
	}
	var picture thumbnail.Picture
	if changed {
		if picture, err = h.thumbnails.Get(ctx, h.service, record, size); err != nil {
			return err
		}
	}
	x.SetHeader("Etag", fileTag(tag))
	if at.known() {
		x.SetHeader("Last-Modified", at.header(time.Now()))
	}
	x.SetHeader("Cache-Control", httpkit.Revalidate)
	if !changed {
		x.WriteHeader(http.StatusNotModified)
		return nil
	}
	name := record.Name
	if extension := path.Ext(name); name != "" {
		name = strings.TrimSuffix(name, extension) + picture.Extension()
	}
	x.SetHeader("Content-Type", picture.Type)
	x.SetHeader("Content-Length", strconv.Itoa(len(picture.Data)))
	x.SetHeader("Content-Disposition", disposition(true, name))
	x.SetHeader("Content-Security-Policy", filePolicy)
	x.WriteHeader(http.StatusOK)
	if x.Request.Method == http.MethodHead {
		return nil
	}
	_, err = x.Write(picture.Data)
	x.RecordError(err)
	return nil
}
