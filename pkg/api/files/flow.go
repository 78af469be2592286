package files

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"belfry/pkg/httpkit"
)

// A transfer may take any time while it makes progress: a client has its patience
// for each flowWindow bytes. The connection of a slower one is closed.
const (
	flowWindow      = 256 << 10
	DefaultPatience = time.Minute
)

// pace measures the time that a client takes for a window. Time that the server
// takes does not count.
type pace struct {
	patience time.Duration
	left     time.Duration // of the patience, for this window
	bytes    int64         // of this window, not yet transferred
}

// begin returns the deadline of the next read or write.
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

// inflow is the body of an upload. It extends the deadline of the connection as long
// as the client keeps its pace, and keeps the error that ended the body, since its
// readers may replace that.
type inflow struct {
	body    io.Reader
	meter   func(n int) error // counts bytes, and waits where their limit is exceeded
	control *http.ResponseController
	pace    pace
	length  int64 // Content-Length; -1: unknown
	bytes   int64
	ended   bool
	err     error
}

func newInflow(x *httpkit.Exchange, patience time.Duration) *inflow {
	return &inflow{
		body: x.Body(), meter: x.Pace, length: x.Request.ContentLength,
		control: http.NewResponseController(x.ResponseWriter), pace: pace{patience: patience},
	}
}

// Read implements io.Reader.
func (f *inflow) Read(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	began := time.Now()
	// Connections without deadlines, as in tests, return an error: nothing to extend.
	_ = f.control.SetReadDeadline(f.pace.begin(began))
	n, err := f.body.Read(p)
	f.pace.end(int64(n), time.Since(began))
	f.bytes += int64(n)
	if limited := f.meter(n); limited != nil {
		err = limited
	}
	if errors.Is(err, io.EOF) {
		f.ended = true
	} else if err != nil {
		f.err = httpkit.BodyError(err, int(f.bytes))
		err = f.err
	}
	return n, err
}

// unread reports whether the body may have more than net/http discards to reuse the
// connection, while the client would wait for the reply.
func (f *inflow) unread() bool { return !f.ended && (f.bytes > 0 || f.length < 0) }

// maxDrained is how much of a refused file is read: a browser that can't send all of a form of a usual size shows an
// error of the connection, and not the reply.
const maxDrained = 32 << 20

// drain reads what is left of a body that is refused.
func (f *inflow) drain() {
	_, _ = io.CopyN(io.Discard, f, maxDrained) // it may be longer, or end with the connection
}

// extendReply gives the client time to read the reply after a long upload.
func (f *inflow) extendReply(patience time.Duration) {
	_ = f.control.SetWriteDeadline(time.Now().Add(patience))
}

// outflow writes a content to the client, which has to keep its pace.
type outflow struct {
	*httpkit.Exchange
	control *http.ResponseController
	pace    pace
	length  int64 // of the content
	err     error // why nothing more can be sent to the client
}

// copyContent writes a content of the length in the reply's headers to the client.
// clientErr is an error of writing: the client has disconnected or is too slow. err is
// an error of reading the content.
func copyContent(x *httpkit.Exchange, content io.Reader, length int64, patience time.Duration) (clientErr, err error) {
	f := &outflow{
		Exchange: x, control: http.NewResponseController(x.ResponseWriter),
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
	n, err := f.Exchange.Write(p)
	f.pace.end(int64(n), time.Since(began))
	f.err = err
	return n, err
}

// extend sets the write deadline to the rest of the client's time.
func (f *outflow) extend() time.Time {
	now := time.Now()
	_ = f.control.SetWriteDeadline(f.pace.begin(now))
	return now
}

// ReadFrom implements io.ReaderFrom. It sends a file in pieces, each of them by the operating system (sendfile).
// net/http does not check the Content-Length there, so ReadFrom does.
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
		n, err := f.Exchange.ReadFrom(&piece)
		f.pace.end(n, time.Since(began))
		sent, rest.N = sent+n, rest.N-n
		if clientError(err) {
			f.err = err
		}
		if err != nil || piece.N > 0 {
			return sent, err
		}
	}
	return sent, nil
}

// clientError reports whether sending a file failed because of the client.
func clientError(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, net.ErrClosed)
}
