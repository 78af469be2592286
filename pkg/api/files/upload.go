package files

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"belfry/internal/ratelimit"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/store"
)

// addIndex is the index in the path that appends a binary to the others.
const addIndex = "add"

// announcement describes a file by the path and headers of a request.
type announcement struct {
	binary.Upload
	match    httpkit.Tags
	form     bool
	boundary string // of the form
}

// put is PUT of a binary: the body is the file, or a form with it.
func (h *Handler) put(x *httpkit.Exchange) error {
	place, err := h.uploadPlace(x)
	if err != nil {
		return err
	}
	body := newInflow(x, h.patience)
	result, err := h.receive(x, binary.Upload{Place: place}, body)
	if err != nil {
		return err
	}
	return h.uploaded(x, place, result)
}

// Receive stores the file of a request for a page at a place, with the rights of its client: it does the same as a PUT
// there. types narrow those that the place takes.
func (h *Handler) Receive(x *httpkit.Exchange, place binary.Place, types []string) error {
	if err := h.offers(place.Store, false); err != nil {
		return err
	}
	body := newInflow(x, h.patience)
	_, err := h.receive(x, binary.Upload{Place: place, Types: types}, body)
	if err != nil {
		body.drain()
		body.extendReply(h.patience)
	}
	return err
}

// receive stores the file of a request. up has its place.
func (h *Handler) receive(x *httpkit.Exchange, up binary.Upload, body *inflow) (result binary.Result, err error) {
	a, err := h.announced(x, up)
	if err != nil {
		return result, err
	}
	_, _, err = h.calls.Write(x, func(ctx context.Context) error {
		a.Reauthorize = func(ctx context.Context) (context.Context, error) { return h.calls.Renew(ctx, x) }
		result, err = h.store(ctx, a, body)
		return err
	})
	body.extendReply(h.patience)
	if err != nil {
		if body.unread() {
			x.CloseConnection()
		}
		if body.err != nil {
			err = body.err
		}
	}
	return result, err
}

// uploaded replies with the record of a new binary.
func (h *Handler) uploaded(x *httpkit.Exchange, p binary.Place, result binary.Result) error {
	record, err := json.Marshal(result.Record)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if !result.Replaced {
		status = http.StatusCreated
		x.SetHeader("Location", h.url+"/"+url.PathEscape(p.Store)+"/"+url.PathEscape(p.UUID)+"/"+
			url.PathEscape(p.Property)+"/"+strconv.Itoa(result.Index))
	}
	x.SetHeader("Etag", fileTag(result.Hash))
	x.SetHeader("Cache-Control", httpkit.NoStore)
	x.Send(status, httpkit.JSON, record)
	return nil
}

// announced parses the headers of an upload.
func (h *Handler) announced(x *httpkit.Exchange, up binary.Upload) (a announcement, err error) {
	a.Upload = up
	if a.match, err = ifMatch(x); err != nil {
		return a, err
	}
	if len(x.Request.Header["Content-Range"]) > 0 {
		return a, errs.New(errs.Invalid, "Content-Range is not supported: send the complete file")
	}
	if err := x.CheckEncoding(); err != nil {
		return a, err
	}
	if a.Digest, err = contentDigest(x.Request.Header["Content-Digest"]); err != nil {
		return a, err
	}
	given := x.Request.Header.Get("Content-Type")
	if media, params, _ := httpkit.ParseMediaType(given); media == formType {
		if a.Digest != nil {
			return a, errs.New(errs.Invalid,
				"Content-Digest of a form is not supported: send it with the part of the file")
		}
		a.form, a.boundary = true, params["boundary"]
		// The file has at least this size.
		a.Size = max(x.Request.ContentLength-maxOverhead, -1)
		return a, nil
	}
	if a.Mimetype, err = mediaType(given); err != nil {
		return a, err
	}
	a.Size = x.Request.ContentLength
	a.Name, err = fileName(x.Request.Header)
	return a, err
}

// uploadPlace parses the path of an upload, where the index may be "add".
func (h *Handler) uploadPlace(x *httpkit.Exchange) (binary.Place, error) {
	if index, err := x.PathParam(indexParam); err != nil || index != addIndex {
		return h.place(x)
	}
	p, err := h.placeAt(x, "0")
	p.Index = binary.Append
	return p, err
}

// store stores a file. It refuses an upload before it reads the first byte, if possible.
func (h *Handler) store(ctx context.Context, a announcement, body *inflow) (binary.Result, error) {
	up := a.Upload
	up.Body = body
	call := store.CallOf(ctx)
	httpkit.Reads(ctx) // the service writes with the configuration that is served when the content has arrived
	address := ratelimit.Key(call.Ctx.Address)
	release, err := h.memory.reserve(ctx, address, h.memoryOf(a, body.length), func() error {
		return h.service.Validate(ctx, up)
	})
	if err != nil {
		return binary.Result{}, err
	}
	defer release()
	up.Budget = budget{h.memory, address}
	if a.form || a.match.Given {
		if err := a.match.Attempt(func(ifRevision uint64) error {
			up.IfRevision = ifRevision
			return h.service.Validate(ctx, up)
		}); err != nil {
			return binary.Result{}, err
		}
	}
	if a.form {
		if err := openUpload(&up, a.boundary, body); err != nil {
			return binary.Result{}, err
		}
	}
	return h.service.Put(ctx, up)
}

// memoryOf returns how much memory an upload needs whose body has a length, negative if it
// is unknown.
func (h *Handler) memoryOf(a announcement, length int64) int64 {
	memory := h.service.Memory(length)
	if a.form {
		memory += formBuffer
	}
	return memory
}

// formBuffer is how many bytes of a form are read at once.
const formBuffer = 32 << 10

// openUpload reads a form up to its file. The fields after the file become metadata
// as well, since the service reads that once the body has ended.
func openUpload(up *binary.Upload, boundary string, body *inflow) error {
	f, err := openForm(bufio.NewReaderSize(body, formBuffer), boundary)
	if err != nil {
		return err
	}
	up.Body, up.Size, up.Metadata = f, -1, f.fields
	if up.Digest, err = contentDigest(f.header()["Content-Digest"]); err != nil {
		return err
	}
	if up.Name, err = fileName(f.header()); err != nil {
		return err
	}
	up.Mimetype, err = mediaType(f.file.Header.Get("Content-Type"))
	return err
}
