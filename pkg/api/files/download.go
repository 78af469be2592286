package files

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"belfry/pkg/binary"
	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// get is GET and HEAD on a binary.
func (h *Handler) get(x *httpkit.Exchange) error {
	if size, requested, err := h.requestedThumbnail(x); err != nil {
		return err
	} else if requested {
		return h.getThumbnail(x, size)
	}
	ctx, record, at, err := h.find(x)
	if err != nil {
		return err
	}
	changed, err := changed(x, record.Hash, at)
	if err != nil {
		return err
	}
	if replyVersion(x, record.Hash, at, changed) {
		return nil
	}
	part, status := span{0, record.Size}, http.StatusOK
	if x.Request.Method == http.MethodGet {
		redirected, err := h.redirect(ctx, x, record)
		if redirected || err != nil {
			return err
		}
		var partial bool
		if part, partial, err = requestedSpan(x.Request.Header, record.Hash, record.Size); err != nil {
			x.SetHeader("Content-Range", "bytes */"+strconv.FormatInt(record.Size, 10))
			return err
		}
		if partial {
			status = http.StatusPartialContent
		}
	}
	return h.send(ctx, x, record, part, status)
}

// replyVersion sets the headers of a version. It reports whether that is all, because the client has the version.
func replyVersion(x *httpkit.Exchange, tag string, at times, changed bool) (done bool) {
	x.SetHeader("Etag", fileTag(tag))
	if at.known() {
		x.SetHeader("Last-Modified", at.header(time.Now()))
	}
	x.SetHeader("Cache-Control", httpkit.Revalidate)
	if !changed {
		x.WriteHeader(http.StatusNotModified)
	}
	return !changed
}

func (h *Handler) find(x *httpkit.Exchange) (context.Context, binary.Record, times, error) {
	place, err := h.place(x)
	if err != nil {
		return nil, binary.Record{}, times{}, err
	}
	ctx, err := h.calls.Client(x)
	if err != nil {
		return nil, binary.Record{}, times{}, err
	}
	record, object, err := h.service.GetWithObject(ctx, place)
	return ctx, record, timesOf(record.Created, object.Revision), err
}

// changed evaluates the preconditions in the order of RFC 9110, 13.2.2: a date counts only without the more precise
// tags. It reports whether none of the client's cached contents is this one.
func changed(x *httpkit.Exchange, hash string, at times) (bool, error) {
	match, err := httpkit.IfMatch(x.Request.Header)
	if err != nil {
		return false, err
	}
	noneMatch, err := httpkit.IfNoneMatch(x.Request.Header)
	if err != nil {
		return false, err
	}
	if match.Given && !match.Match(hash) {
		return false, match.FileMismatch()
	}
	if since, given := at.condition(x.Request.Header, "If-Unmodified-Since"); given && !match.Given &&
		!at.unchangedSince(since) {
		return false, errs.New(errs.Mismatch,
			"If-Unmodified-Since does not hold: the binary, or its object, has been written since")
	}
	if noneMatch.Given {
		return !noneMatch.Match(hash), nil
	}
	since, given := at.condition(x.Request.Header, "If-Modified-Since")
	return !given || !at.unchangedSince(since), nil
}

// redirect redirects the client to a presigned URL, if those are configured and the
// storage has them.
func (h *Handler) redirect(ctx context.Context, x *httpkit.Exchange, record binary.Record) (bool, error) {
	if h.presign == 0 || holdsHereAlone(x.Request.Header, record.Hash) {
		return false, nil
	}
	media, inline := servedType(record.Mimetype)
	url, ok, err := h.service.Sign(ctx, record.Hash, driver.SignedHeaders{
		ContentType: media, ContentDisposition: disposition(inline, record.Name), CacheControl: httpkit.Revalidate,
	}, h.presign)
	if err != nil || !ok {
		return false, err
	}
	x.SetHeader("Location", url)
	x.SetHeader("Cache-Control", httpkit.NoStore)
	x.WriteHeader(http.StatusFound)
	return true, nil
}

// holdsHereAlone reports whether a request has conditions that the storage could evaluate differently. Clients send
// their conditions to the storage too, which has other tags, and whose date is that of the content: content that was
// stored long ago for another file would be "not modified". If-Range with another tag may come from an earlier reply of
// the storage, which compares it.
func holdsHereAlone(h http.Header, hash string) bool {
	for _, name := range [...]string{"If-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		if len(h[name]) > 0 {
			return true
		}
	}
	given := h.Get("If-Range")
	_, noDate := http.ParseTime(given)
	return noDate == nil || given != "" && httpkit.RangeHolds(h, hash)
}

// send replies with a content or a part of it.
func (h *Handler) send(ctx context.Context, x *httpkit.Exchange, record binary.Record, part span, status int) error {
	if x.Request.Method == http.MethodHead {
		describe(x, record, part, status)
		x.WriteHeader(status)
		return nil
	}
	content, err := h.service.Open(ctx, record.Hash, part.start, part.length)
	if errors.Is(err, errs.NotFound) {
		return errs.Wrap(err, errs.Internal, "the storage lacks the content %s of a record", record.Hash)
	}
	if err != nil {
		return err
	}
	// A failed close changes nothing: the content has been checked by then.
	defer func() { _ = content.Close() }()
	describe(x, record, part, status)
	x.WriteHeader(status)
	httpkit.Reads(x.Request.Context())
	clientErr, err := copyContent(x, content, part.length, h.patience)
	if err != nil && x.Request.Context().Err() == nil {
		return err
	}
	// A disconnected client is logged, and does not count as a failure.
	x.RecordError(clientErr)
	return nil
}

// describe sets the headers of a content.
func describe(x *httpkit.Exchange, record binary.Record, part span, status int) {
	media, inline := servedType(record.Mimetype)
	x.SetHeader("Content-Type", media)
	x.SetHeader("Content-Length", strconv.FormatInt(part.length, 10))
	x.SetHeader("Content-Disposition", disposition(inline, record.Name))
	x.SetHeader("Content-Security-Policy", filePolicy)
	x.SetHeader("Accept-Ranges", "bytes")
	x.SetHeader("Repr-Digest", reprDigest(record.Hash))
	if status == http.StatusPartialContent {
		x.SetHeader("Content-Range", part.contentRange(record.Size))
	}
}
