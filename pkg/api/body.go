package api

import (
	"errors"
	"io"
	"mime"
	"os"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// Media types of objects.
const (
	jsonType       = "application/json"
	mergePatchType = "application/merge-patch+json"
)

// maxKeptBuffer is the largest buffer that is kept for another request.
const maxKeptBuffer = 64 << 10

// readObject reads the body as an object. Its media type is one of accepted; a
// body without one is taken as JSON.
func (s *Server) readObject(x *exchange, accepted ...string) (object.Object, error) {
	if err := checkMedia(x, accepted); err != nil {
		return nil, err
	}
	buf := s.buffers.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= maxKeptBuffer {
			s.buffers.Put(buf)
		}
	}()
	var err error
	*buf, err = s.readBody(x, (*buf)[:0])
	if err != nil {
		x.closeAfter()
		return nil, err
	}
	// Parse keeps nothing of the buffer.
	return object.Parse(*buf)
}

// checkCoding refuses a body that is not what it stands for.
func checkCoding(x *exchange) error {
	for _, coding := range x.req.Header["Content-Encoding"] {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			x.set("Accept-Encoding", "identity")
			return errs.New(errs.Unsupported, "Content-Encoding %q is not taken: send the body as it is", cut(coding, 64))
		}
	}
	return nil
}

func checkMedia(x *exchange, accepted []string) error {
	if err := checkCoding(x); err != nil {
		return err
	}
	given := x.req.Header.Get("Content-Type")
	if given == "" || given == accepted[0] {
		return nil
	}
	media, params, err := mime.ParseMediaType(given)
	if err != nil {
		return errs.New(errs.Unsupported, "Content-Type is malformed: send %s", strings.Join(accepted, " or "))
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		return errs.New(errs.Unsupported, "charset %q is not taken: JSON is UTF-8", cut(charset, 64))
	}
	for _, a := range accepted {
		if media == a {
			return nil
		}
	}
	return errs.New(errs.Unsupported, "Content-Type %q is not taken: send %s", cut(media, 64), strings.Join(accepted, " or "))
}

// readBody appends the body to buf. Memory grows with what arrives, not with
// what Content-Length announces, and nothing is read beyond the limit.
func (s *Server) readBody(x *exchange, buf []byte) ([]byte, error) {
	if x.req.ContentLength > s.MaxBody {
		return buf, s.tooLarge()
	}
	if cap(buf) == 0 {
		buf = make([]byte, 0, 4<<10)
	}
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := x.req.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > s.MaxBody {
			return buf, s.tooLarge()
		}
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, unreadable(err, len(buf))
		}
	}
}

func (s *Server) tooLarge() error {
	return errs.New(errs.TooLarge, "the body is larger than %d bytes", s.MaxBody)
}

// unreadable says why a body broke off after some bytes. All the reasons are
// on the client's side or on the way.
func unreadable(err error, after int) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errs.Wrap(err, errs.Canceled, "the body came too slowly: %d bytes came in time", after)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errs.Wrap(err, errs.Invalid, "the body ends too early, after %d bytes", after)
	default:
		return errs.Wrap(err, errs.Invalid, "the body can't be read beyond byte %d: its chunks are malformed, or the connection broke", after)
	}
}
