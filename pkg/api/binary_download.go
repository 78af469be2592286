package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"belfry/pkg/binary"
	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// get is GET and HEAD on a binary.
func (a *attachments) get(x *exchange) error {
	ctx, record, err := a.find(x)
	if err != nil {
		return err
	}
	tag := fileTag(record.Hash)
	changed, err := x.changed(record.Hash)
	if err != nil {
		return err
	}
	x.set("Etag", tag)
	x.set("Cache-Control", revalidate)
	if !changed {
		x.WriteHeader(http.StatusNotModified)
		return nil
	}
	part, status := span{0, record.Size}, http.StatusOK
	if x.req.Method == http.MethodGet {
		moved, err := a.redirect(ctx, x, record)
		if moved || err != nil {
			return err
		}
		var partial bool
		if part, partial, err = requestedSpan(x.req.Header, tag, record.Size); err != nil {
			x.set("Content-Range", "bytes */"+strconv.FormatInt(record.Size, 10))
			return err
		}
		if partial {
			status = http.StatusPartialContent
		}
	}
	return a.send(ctx, x, record, part, status)
}

func (a *attachments) find(x *exchange) (context.Context, binary.Record, error) {
	place, err := a.place(x)
	if err != nil {
		return nil, binary.Record{}, err
	}
	call, err := a.server.call(x)
	if err != nil {
		return nil, binary.Record{}, err
	}
	ctx := store.WithCall(x.req.Context(), call)
	record, err := a.Service.Get(ctx, place)
	return ctx, record, err
}

// changed reports whether a client that has some contents needs this one.
func (x *exchange) changed(hash string) (bool, error) {
	match, err := parseTags("If-Match", x.req.Header["If-Match"])
	if err != nil {
		return false, err
	}
	noneMatch, err := parseTags("If-None-Match", x.req.Header["If-None-Match"])
	if err != nil {
		return false, err
	}
	if match.given && !match.has(hash, false) {
		return false, errs.New(errs.Mismatch, "the binary is none of those in If-Match")
	}
	return !noneMatch.given || !noneMatch.has(hash, true), nil
}

// redirect sends the client to the storage, if it is to be asked itself.
func (a *attachments) redirect(ctx context.Context, x *exchange, record binary.Record) (bool, error) {
	if a.Presign == 0 {
		return false, nil
	}
	media, inline := servedType(record.Mimetype)
	url, ok, err := a.Service.Sign(ctx, record.Hash, driver.SignedHeaders{
		ContentType: media, ContentDisposition: disposition(inline, record.Name), CacheControl: revalidate,
	}, a.Presign)
	if err != nil || !ok {
		return false, err
	}
	x.set("Location", url)
	x.set("Cache-Control", noStore)
	x.WriteHeader(http.StatusFound)
	return true, nil
}

// send replies with a part of a content, or with all of it.
func (a *attachments) send(ctx context.Context, x *exchange, record binary.Record, part span, status int) error {
	if x.req.Method == http.MethodHead {
		x.describe(record, part, status)
		x.WriteHeader(status)
		return nil
	}
	content, err := a.Service.Open(ctx, record.Hash, part.start, part.length)
	if errors.Is(err, errs.NotFound) {
		return errs.Wrap(err, errs.Internal, "the content %s of a record is lost", record.Hash)
	}
	if err != nil {
		return err
	}
	// What was read is judged already.
	defer func() { _ = content.Close() }()
	x.describe(record, part, status)
	x.WriteHeader(status)
	left, broken := x.pour(content, part.length, a.Patience)
	if broken != nil && x.req.Context().Err() == nil {
		return broken
	}
	// A client that leaves is no fault of anybody's.
	x.err = left
	return nil
}

// describe sets the headers that tell of a content.
func (x *exchange) describe(record binary.Record, part span, status int) {
	media, inline := servedType(record.Mimetype)
	x.set("Content-Type", media)
	x.set("Content-Length", strconv.FormatInt(part.length, 10))
	x.set("Content-Disposition", disposition(inline, record.Name))
	x.set("Content-Security-Policy", filePolicy)
	x.set("Accept-Ranges", "bytes")
	x.set("Repr-Digest", reprDigest(record.Hash))
	if status == http.StatusPartialContent {
		x.set("Content-Range", part.contentRange(record.Size))
	}
}
