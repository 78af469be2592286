package api

import (
	"bufio"
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strconv"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
)

// addIndex is the index of a binary that comes behind the others.
const addIndex = "add"

// announcement is what a request says of the file it carries, before it does.
type announcement struct {
	binary.Upload
	match    tags
	form     bool
	boundary string // of the form
}

// put is PUT of a binary: the body is the file, or a form that has it.
func (a *attachments) put(x *exchange) error {
	said, err := a.announced(x)
	if err != nil {
		return err
	}
	body := a.server.inflow(x, a.Patience)
	var result binary.Result
	_, _, err = a.server.write(x, func(ctx context.Context) error {
		result, err = a.take(ctx, said, body)
		return err
	})
	body.extendReply(a.Patience)
	if err != nil {
		if body.unread() {
			x.closeAfter()
		}
		if body.err != nil {
			return body.err
		}
		return err
	}
	return a.uploaded(x, said.Place, result)
}

// uploaded replies with the record of a new binary.
func (a *attachments) uploaded(x *exchange, p binary.Place, result binary.Result) error {
	record, err := json.Marshal(result.Record)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if !result.Replaced {
		status = http.StatusCreated
		x.set("Location", a.URL+"/"+url.PathEscape(p.Store)+"/"+url.PathEscape(p.UUID)+"/"+
			url.PathEscape(p.Property)+"/"+strconv.Itoa(result.Index))
	}
	x.set("Etag", fileTag(result.Hash))
	x.set("Cache-Control", noStore)
	x.send(status, jsonType, record)
	return nil
}

// announced reads path and headers of an upload.
func (a *attachments) announced(x *exchange) (said announcement, err error) {
	if said.Place, err = a.uploadPlace(x); err != nil {
		return said, err
	}
	if said.match, err = x.ifMatch(); err != nil {
		return said, err
	}
	if len(x.req.Header["Content-Range"]) > 0 {
		return said, errs.New(errs.Invalid, "Content-Range is not taken: send the whole file")
	}
	if err := checkCoding(x); err != nil {
		return said, err
	}
	if said.Digest, err = contentDigest(x.req.Header["Content-Digest"]); err != nil {
		return said, err
	}
	given := x.req.Header.Get("Content-Type")
	if media, params, _ := mime.ParseMediaType(given); media == formType {
		if said.Digest != nil {
			return said, errs.New(errs.Invalid, "Content-Digest of a form is not taken: give it to the part with the file")
		}
		said.form, said.boundary = true, params["boundary"]
		// At least so much is the file's.
		said.Size = max(x.req.ContentLength-maxFormAround, -1)
		return said, nil
	}
	if said.Mimetype, err = mediaType(given); err != nil {
		return said, err
	}
	said.Size = x.req.ContentLength
	said.Name, err = givenName(x.req.Header)
	return said, err
}

// uploadPlace reads the path of an upload, where the index may be "add".
func (a *attachments) uploadPlace(x *exchange) (binary.Place, error) {
	if index, err := x.segment(indexParam); err != nil || index != addIndex {
		return a.place(x)
	}
	p, err := a.placeAt(x, "0")
	p.Index = binary.Append
	return p, err
}

// take takes a file in. What can be refused is, before a byte of it is read.
func (a *attachments) take(ctx context.Context, said announcement, body *inflow) (binary.Result, error) {
	up := said.Upload
	up.Body = body
	if said.form || said.match.given {
		if err := said.match.attempt(func(ifRevision uint64) error {
			up.IfRevision = ifRevision
			return a.Service.Validate(ctx, up)
		}); err != nil {
			return binary.Result{}, err
		}
	}
	if said.form {
		if err := openUpload(&up, said.boundary, body); err != nil {
			return binary.Result{}, err
		}
	}
	return a.Service.Put(ctx, up)
}

// openUpload reads a form up to its file. The fields behind the file become
// metadata as well, since the service looks at that when the body has ended.
func openUpload(up *binary.Upload, boundary string, body *inflow) error {
	f, err := openForm(bufio.NewReaderSize(body, 32<<10), boundary)
	if err != nil {
		return err
	}
	up.Body, up.Size, up.Metadata = f, -1, f.fields
	if up.Digest, err = contentDigest(f.header()["Content-Digest"]); err != nil {
		return err
	}
	if up.Name, err = givenName(f.header()); err != nil {
		return err
	}
	up.Mimetype, err = mediaType(f.file.Header.Get("Content-Type"))
	return err
}
