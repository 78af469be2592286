package httpkit

import (
	"errors"
	"io"
	"mime"
	"net/url"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Media types of bodies.
const (
	JSON       = "application/json"
	MergePatch = "application/merge-patch+json"
	HTMLForm   = "application/x-www-form-urlencoded"
	NDJSON     = "application/x-ndjson"
)

// otherNames are the names that programs give to media types of bodies besides those that belfry sends. It excludes
// formats with rules of their own, such as application/vnd.api+json or application/json-patch+json.
var otherNames = map[string]string{
	"text/json":             JSON,
	"application/ndjson":    NDJSON,
	"application/jsonl":     NDJSON,
	"application/x-jsonl":   NDJSON,
	"application/jsonlines": NDJSON, "application/x-jsonlines": NDJSON,
}

// mediaOf returns a media type by the name that belfry gives it.
func mediaOf(media string) string {
	if name, ok := otherNames[media]; ok {
		return name
	}
	return media
}

// maxPooledBuffer is the largest buffer that is reused for another request.
const maxPooledBuffer = 64 << 10

// ReadObject reads the body as an object. Its media type has to be one of
// accepted; a body without one is read as JSON.
func (x *Exchange) ReadObject(accepted ...string) (object.Object, error) {
	return x.readObject(x.router.maxBody, object.MaxMembers, accepted...)
}

// ReadSmallObject is ReadObject of a body of at most so many bytes, whether or not it announces how many it has, and
// with as many members as a form has fields.
func (x *Exchange) ReadSmallObject(limit int64, accepted ...string) (object.Object, error) {
	return x.readObject(limit, maxParameters, accepted...)
}

func (x *Exchange) readObject(limit int64, members int, accepted ...string) (object.Object, error) {
	if err := x.CheckMedia(accepted...); err != nil {
		return nil, err
	}
	buffers := &x.router.buffers
	buf := buffers.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= maxPooledBuffer {
			buffers.Put(buf)
		}
	}()
	memory := x.router.bodies.begin(x.Address)
	defer memory.end()
	var err error
	*buf, err = x.readBody((*buf)[:0], memory, limit)
	if err != nil {
		x.CloseConnection()
		return nil, err
	}
	// Parse retains no part of the buffer.
	return object.ParseWithin(*buf, members)
}

// ReadForm reads the body, of at most so many bytes, as the fields of an HTML form.
func (x *Exchange) ReadForm(limit int64) (url.Values, error) {
	if err := x.CheckMedia(HTMLForm); err != nil {
		return nil, err
	}
	memory := x.router.bodies.begin(x.Address)
	defer memory.end()
	body, err := x.readBody(nil, memory, limit)
	if err != nil {
		x.CloseConnection()
		return nil, err
	}
	text := string(body)
	if hasTooMany(text) {
		return nil, errs.New(errs.TooLarge, "the form has more than %d fields", maxParameters)
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, errs.New(errs.Invalid, "the form is not properly encoded")
	}
	for name, all := range values {
		if !utf8.ValidString(name) || slices.ContainsFunc(all, func(v string) bool { return !utf8.ValidString(v) }) {
			return nil, errs.New(errs.Invalid, "a field of the form is not UTF-8 text")
		}
	}
	return values, nil
}

// CheckEncoding reports errs.Unsupported for a body that is compressed.
func (x *Exchange) CheckEncoding() error {
	for _, coding := range x.Request.Header["Content-Encoding"] {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			x.SetHeader("Accept-Encoding", "identity")
			return errs.New(errs.Unsupported, "Content-Encoding %q is not supported: send the body without it",
				Truncate(coding, 64))
		}
	}
	return nil
}

// maxMediaParameters bounds the parameters of a media type, or a disposition: each takes many times its bytes.
const maxMediaParameters = 200

// ParseMediaType is mime.ParseMediaType of a header that a client has sent, which is malformed if it has more
// parameters than any that has a meaning.
func ParseMediaType(given string) (media string, parameters map[string]string, err error) {
	if strings.Count(given, ";") > maxMediaParameters {
		return "", nil, errs.New(errs.Invalid, "more than %d parameters", maxMediaParameters)
	}
	return mime.ParseMediaType(given)
}

// HasMedia reports whether the body says that it has a media type.
func (x *Exchange) HasMedia(want string) bool {
	if given := x.Request.Header["Content-Type"]; len(given) == 0 || given[0] == JSON {
		return want == JSON && len(given) > 0
	}
	media, _, err := ParseMediaType(x.Request.Header.Get("Content-Type"))
	return err == nil && mediaOf(media) == want
}

// CheckMedia reports errs.Unsupported for a body that is compressed, or has another media type. A body
// without a type has the first of them.
func (x *Exchange) CheckMedia(accepted ...string) error {
	if err := x.CheckEncoding(); err != nil {
		return err
	}
	given := x.Request.Header.Get("Content-Type")
	if given == "" || given == accepted[0] {
		return nil
	}
	media, params, err := ParseMediaType(given)
	if err != nil {
		return errs.New(errs.Unsupported, "Content-Type is malformed: send %s", strings.Join(accepted, " or "))
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") &&
		!strings.EqualFold(charset, "utf8") {
		return errs.New(errs.Unsupported, "charset %q is not supported: JSON is UTF-8", Truncate(charset, 64))
	}
	for _, a := range accepted {
		if mediaOf(media) == a {
			return nil
		}
	}
	return errs.New(errs.Unsupported, "Content-Type %q is not supported: send %s", Truncate(media, 64),
		strings.Join(accepted, " or "))
}

// readBody appends the body to buf. Memory grows with the data that arrives, not with
// Content-Length, and nothing is read beyond the limit.
func (x *Exchange) readBody(buf []byte, memory *body, limit int64) ([]byte, error) {
	if x.Request.ContentLength > limit {
		return buf, tooLarge(limit)
	}
	if cap(buf) == 0 {
		buf = make([]byte, 0, 4<<10)
	}
	for {
		if len(buf) == cap(buf) {
			if err := memory.grow(2 * cap(buf)); err != nil {
				return buf, err
			}
			buf = slices.Grow(buf, cap(buf))
		}
		n, err := x.Body().Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return buf, tooLarge(limit)
		}
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, BodyError(err, len(buf))
		}
	}
}

func tooLarge(limit int64) error {
	return errs.New(errs.TooLarge, "the body is larger than %d bytes", limit)
}

// BodyError returns the error to reply with when reading a body failed after some
// bytes. All causes are those of the client or of the network.
func BodyError(err error, after int) error {
	switch {
	case IsCutOff(err):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errs.Wrap(err, errs.Canceled, "the body arrived too slowly: %d bytes arrived in time", after)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errs.Wrap(err, errs.Invalid, "the body ends too early, after %d bytes", after)
	default:
		return errs.Wrap(err, errs.Invalid,
			"the body can't be read beyond byte %d: its chunks are malformed, or the connection broke", after)
	}
}

// maxParameters bounds the parameters of a query, and the fields of a form: each takes many times its bytes.
const maxParameters = 1000

// hasTooMany reports whether a query, or a form, has more parameters than that. It reads no parameter.
func hasTooMany(text string) bool { return strings.Count(text, "&") >= maxParameters }

// ParseQuery parses a query. It is Invalid if it is malformed, or has more parameters than any route has use for.
func ParseQuery(raw string) (url.Values, error) {
	if hasTooMany(raw) {
		return nil, errs.New(errs.Invalid, "the query has more than %d parameters", maxParameters)
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, errs.New(errs.Invalid, "the query is not properly percent-encoded")
	}
	return query, nil
}

// Query returns the query of the request, for routes that ignore malformed parameters. If there are too many, it
// ignores all.
func (x *Exchange) Query() url.Values {
	if hasTooMany(x.Request.URL.RawQuery) {
		return nil
	}
	return x.Request.URL.Query()
}
