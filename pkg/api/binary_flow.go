package api

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

// A transfer may take any time as long as it gets on: every flowWindow bytes,
// the client has its patience anew. Whoever is slower loses the connection.
const (
	flowWindow      = 256 << 10
	DefaultPatience = time.Minute
)

// pace measures how long a client takes for a window. The time in which
// belfry itself is busy does not count.
type pace struct {
	patience time.Duration
	left     time.Duration // of the patience, for this window
	bytes    int64         // of this window, still to come
}

// begin returns by when the client must have got on.
func (p *pace) begin(now time.Time) time.Time {
	if p.bytes <= 0 {
		p.bytes, p.left = flowWindow, p.patience
	}
	return now.Add(p.left)
}

func (p *pace) end(n int64, took time.Duration) {
	p.bytes -= n
	p.left -= took
}

// inflow is the body of an upload. It lets the client take its time, within
// its pace, and remembers why the body broke off: whoever reads it may tell
// less.
type inflow struct {
	body    io.Reader
	control *http.ResponseController
	pace    pace
	length  int64 // announced; -1: not
	bytes   int64
	ended   bool
	err     error
}

func (s *Server) inflow(x *exchange, patience time.Duration) *inflow {
	return &inflow{
		body: x.req.Body, length: x.req.ContentLength,
		control: http.NewResponseController(x.ResponseWriter), pace: pace{patience: patience},
	}
}

// Read implements io.Reader.
func (f *inflow) Read(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	began := time.Now()
	// Where there are no deadlines, as in a test, there is nothing to extend.
	_ = f.control.SetReadDeadline(f.pace.begin(began))
	n, err := f.body.Read(p)
	f.pace.end(int64(n), time.Since(began))
	f.bytes += int64(n)
	if errors.Is(err, io.EOF) {
		f.ended = true
	} else if err != nil {
		f.err = unreadable(err, int(f.bytes))
		err = f.err
	}
	return n, err
}

// unread reports whether more may come than net/http reads to keep the
// connection, and whether the client would be kept waiting meanwhile.
func (f *inflow) unread() bool { return !f.ended && (f.bytes > 0 || f.length < 0) }

// extendReply gives the client time to read the reply, however long the upload
// took.
func (f *inflow) extendReply(patience time.Duration) {
	_ = f.control.SetWriteDeadline(time.Now().Add(patience))
}

// outflow is the way of a content to the client, which has to keep its pace.
type outflow struct {
	*exchange
	control *http.ResponseController
	pace    pace
	length  int64 // of the content
	err     error // why the client can't be sent more
}

// pour sends a content of a length, which the reply's headers have told. The
// first error is the client's, and nobody is left who could be told; the
// second is that of reading the content.
func (x *exchange) pour(content io.Reader, length int64, patience time.Duration) (client, reading error) {
	f := &outflow{
		exchange: x, control: http.NewResponseController(x.ResponseWriter),
		pace: pace{patience: patience}, length: length,
	}
	sent, err := io.Copy(f, content)
	if f.err != nil {
		return f.err, nil
	}
	if err == nil && sent < length {
		err = fmt.Errorf("the content ends after %d of %d bytes: %w", sent, length, io.ErrUnexpectedEOF)
	}
	return nil, err
}

// Write implements io.Writer.
func (f *outflow) Write(p []byte) (int, error) {
	began := f.extend()
	n, err := f.exchange.Write(p)
	f.pace.end(int64(n), time.Since(began))
	f.err = err
	return n, err
}

// extend gives the client what is left of its time.
func (f *outflow) extend() time.Time {
	now := time.Now()
	_ = f.control.SetWriteDeadline(f.pace.begin(now))
	return now
}

// ReadFrom implements io.ReaderFrom. A file goes in pieces, each of which the
// operating system sends by itself. That does not count against the length that
// the headers told, so it is seen to here.
func (f *outflow) ReadFrom(r io.Reader) (sent int64, err error) {
	rest := io.LimitedReader{R: r, N: f.length}
	if limited, ok := r.(*io.LimitedReader); ok {
		rest = io.LimitedReader{R: limited.R, N: min(limited.N, f.length)}
	}
	if _, ok := rest.R.(syscall.Conn); !ok {
		return io.CopyBuffer(struct{ io.Writer }{f}, &rest, make([]byte, flowWindow/4))
	}
	for rest.N > 0 {
		piece := io.LimitedReader{R: rest.R, N: min(rest.N, flowWindow)}
		began := f.extend()
		n, err := f.exchange.ReadFrom(&piece)
		f.pace.end(n, time.Since(began))
		sent, rest.N = sent+n, rest.N-n
		if clientLeft(err) {
			f.err = err
		}
		if err != nil || piece.N > 0 {
			return sent, err
		}
	}
	return sent, nil
}

// clientLeft reports whether sending a file failed on the side of the client.
func clientLeft(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed)
}
