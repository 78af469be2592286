package httpkit

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"belfry/pkg/errs"
)

// maxUnread is how much of a body that no handler has read is read away, so that the connection can be used again: as
// much as net/http reads.
const maxUnread = 256 << 10

// errCutOff is the error of a body that had not arrived when the process had to stop.
var errCutOff = &errs.Error{Kind: errs.Unavailable, RetryAfter: bodyRetry,
	Message: "belfry is stopping, and the body has not arrived: send the request again"}

// IsCutOff reports whether the reading of a body has failed because the process had to stop.
func IsCutOff(err error) bool { return errors.Is(err, errCutOff) }

// arrivals are the bodies that are being read. A client that sends one slowly, or not to its end, must not keep the
// process from stopping. It is safe for concurrent use.
type arrivals struct {
	mu      sync.Mutex
	reading map[*Exchange]struct{} // that wait for their clients now
	over    bool                   // no further body is read
}

func newArrivals() *arrivals { return &arrivals{reading: map[*Exchange]struct{}{}} }

// begin reports whether a read may begin.
func (a *arrivals) begin(x *Exchange) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over {
		a.reading[x] = struct{}{}
	}
	return !a.over
}

// end ends a read, and reports whether it was cut off. Data that arrives at the same moment is cut off, too: the
// deadline that has passed would end the request in another way.
func (a *arrivals) end(x *Exchange) (cutOff bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.reading, x)
	return a.over
}

// cutOff ends all reads, and those that begin later. The deadline is set while the reads can't end: afterwards the
// exchange may be another one.
func (a *arrivals) cutOff() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	for x := range a.reading {
		_ = http.NewResponseController(x.ResponseWriter).SetReadDeadline(time.Now())
	}
}

// CutOff ends the reads of all bodies that have not arrived: their requests get 503, and their connections are closed.
func (r *Router) CutOff() { r.arrivals.cutOff() }

// Body returns the body of the request. Handlers read it, and not that of Request: a stop ends it.
func (x *Exchange) Body() io.ReadCloser { return arriving{x} }

// arriving is the body of a request.
type arriving struct{ x *Exchange }

// Read implements io.Reader.
func (b arriving) Read(p []byte) (int, error) {
	x := b.x
	all := x.router.arrivals
	if !all.begin(x) {
		return 0, errCutOff
	}
	n, err := x.body.Read(p)
	if all.end(x) && err != nil {
		return n, errCutOff
	}
	x.received += int64(n)
	x.arrived = x.arrived || err == io.EOF
	return n, err
}

// Close implements io.Closer.
func (b arriving) Close() error { return b.x.body.Close() }

// settle reads the rest of a body that nobody has read to its end before the reply begins, as net/http would, which a
// stop could not end; or has the connection closed. The rest is not a further request.
func (x *Exchange) settle() {
	if !hasRest(x) || x.Header().Get("Connection") == "close" || x.Request.Close || awaitsContinue(x) {
		return // the connection is closed
	}
	if x.Request.ContentLength-x.received > maxUnread {
		x.CloseConnection()
		return
	}
	if n, err := io.CopyN(io.Discard, x.Body(), maxUnread+1); !errors.Is(err, io.EOF) || n > maxUnread {
		x.long = true
		x.CloseConnection()
	}
}

// leaveTimeout is how long net/http may read the rest of a body after the reply.
const leaveTimeout = 5 * time.Second

// leave ends a request whose body is not read to its end, and whose connection is closed. It sends the reply, and
// discards some of the remaining body, so that a client which sends all before it reads finds the reply. net/http does
// that too, but a stop would not end it. If too much remains, leave discards nothing, and gives the client a moment for
// the reply.
func (x *Exchange) leave() {
	if !hasRest(x) || x.aborted || x.stream || !x.Replied() || x.Request.ContentLength-x.received > maxUnread {
		return
	}
	control := http.NewResponseController(x.ResponseWriter)
	if !awaitsContinue(x) && control.Flush() == nil && !x.long {
		if _, err := io.CopyN(io.Discard, x.Body(), maxUnread); err != nil {
			return // all of it is read, or no more of it can be
		}
	}
	_ = control.SetReadDeadline(time.Now().Add(leaveTimeout))
}

// hasRest reports whether the request has a body that nobody has read to its end, on a connection of its own.
func hasRest(x *Exchange) bool {
	return x.body != nil && !x.arrived && x.Request.ContentLength != 0 && x.Request.ProtoMajor == 1
}

// awaitsContinue reports whether the client sends nothing of its body, as nobody has asked for it.
func awaitsContinue(x *Exchange) bool {
	return x.received == 0 && strings.EqualFold(x.Request.Header.Get("Expect"), "100-continue")
}
