package files

import (
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

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
	switch {
	case len(h.thumbs) == 0:
		return size, true, errs.New(errs.Invalid, "thumb: this service has no thumbnails")
	case len(given) != 1 || !slices.Contains(h.thumbs, given[0]):
		return size, true, errs.New(errs.Invalid, "thumb: expected one of the sizes %s", strings.Join(h.thumbs, ", "))
	}
	size, err = thumbnail.ParseSize(given[0])
	return size, true, err
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
	if replyVersion(x, tag, at, changed) {
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
