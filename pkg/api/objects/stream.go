package objects

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/pkg/wire"
)

// Limits of a stream of creations.
const (
	// bytes: an object of the largest size, with all characters escaped (\u0061), and a reserve
	maxLine        = 6*store.MaxObjectSize + 64<<10
	maxStreamLines = 100_000
	maxStreamTime  = 10 * time.Minute // then the client begins another stream, perhaps at another process

	linesInFlight = 64      // whose writes share the syncs of the backend
	bytesInFlight = 2 << 20 // of lines

	idleTimeout = 60 * time.Second // for the client to send data, or to read its replies
)

var renewInterval = 5 * time.Second // how long the rights of a user are cached; shorter in a test

// stream is a request that creates an object for each line of its body, and replies with a line for each. Lines are
// written concurrently, and the replies are in the order of the lines. A client that sends faster than objects are
// written, or does not read its replies, has to wait: a line is read only if it can be in flight.
type stream struct {
	*resource
	x       *httpkit.Exchange
	control *http.ResponseController
	request *request
	lines   *bufio.Reader
	weight  *semaphore.Weighted // bytes in flight
	pending chan *line          // in order
	number  int                 // of the last line
	began   time.Time
	renewed time.Time

	creating sync.WaitGroup
	ending   context.Context // ends before further lines begin; its cause is the reason

	// byUUID has the lines in flight, and some earlier ones, by the uuid that they name. The first of two lines with
	// the same uuid creates the object.
	byUUID map[string]*line
	recent []*line
}

// line is a line in flight. Its reply is set once done is closed.
type line struct {
	number int
	size   int
	body   object.Object
	uuid   string // "" for none
	after  *line  // the previous line with the same uuid; nil for none
	done   chan struct{}
	reply  []byte
}

// stream is POST of a stream of objects.
func (r *resource) stream(x *httpkit.Exchange) error {
	q, err := newRequest(http.MethodPost, "", x.Request.Header)
	if err != nil {
		return err
	}
	if q.key != "" {
		return errs.New(errs.Invalid,
			"%s is not supported for a stream of objects: give each line a uuid, or send a batch", wire.HeaderKey)
	}
	if err := x.CheckMedia(httpkit.NDJSON); err != nil {
		return err
	}
	ctx, err := r.calls.Client(x)
	if err != nil {
		return err
	}
	leave, err := r.streams.enter(x.Address)
	if err != nil {
		return err
	}
	defer leave()
	// net/http cancels the context of the request when a read fails, but the lines in flight must be completed.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s := &stream{
		resource: r, x: x, control: http.NewResponseController(x), request: q,
		weight: semaphore.NewWeighted(bytesInFlight), pending: make(chan *line, linesInFlight),
		byUUID: map[string]*line{}, began: time.Now(), renewed: time.Now(), ending: r.calls.Streams(),
	}
	s.lines = newLineReader(&timedBody{s, x.Request.Body})
	// Replies are sent while the body is read. An HTTP/1.0 connection can't do so, and its client reads the replies
	// afterwards. If belfry ends the stream first, net/http does not read the rest of the body, and does not treat it
	// as a further request.
	_ = s.control.EnableFullDuplex()
	x.CloseConnection()
	x.MarkStream()
	x.SetHeader("Cache-Control", httpkit.NoStore)
	x.SetHeader("Content-Type", httpkit.NDJSON)
	sent := make(chan error, 1)
	go func() {
		err := s.send()
		if err != nil {
			cancel() // the client no longer reads: begin no further line
		}
		for l := range s.pending {
			<-l.done
		}
		sent <- err
	}()
	defer httpkit.OnEnd(s.ending, s.interrupt)()
	if failed := s.receive(ctx); failed != nil && ctx.Err() == nil {
		s.number++
		s.enqueue(ctx, s.failed(s.number, failed))
	}
	close(s.pending)
	s.creating.Wait()
	if err := <-sent; err != nil {
		x.RecordError(errs.Wrap(err, errs.Canceled, "the client did not read the replies to its lines"))
	}
	return nil
}

// receive reads the lines and has their objects created. The error is why it ended before the end of the body.
func (s *stream) receive(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil { // the goroutines that create and send have to end anyway
			err = errs.Panicked(p)
		}
	}()
	for {
		text, failed := s.readLine()
		switch {
		case errors.Is(failed, io.EOF):
			return nil
		case s.ending.Err() != nil:
			return s.ended()
		case failed != nil && !errors.Is(failed, errLongLine):
			return brokenBody(failed)
		}
		if s.number >= maxStreamLines {
			return errs.New(errs.TooLarge,
				"a stream has at most %d lines: send this line and those after it in another request", maxStreamLines)
		}
		if time.Since(s.began) > maxStreamTime {
			return errs.New(errs.Unavailable,
				"a stream takes at most %s: send this line and those after it in another request", maxStreamTime)
		}
		s.number++
		if s.number == 1 {
			text = object.WithoutMark(text)
		}
		if failed == nil && len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		if ctx, err = s.renew(ctx); err == nil {
			err = s.begin(ctx, text, failed)
		}
		if err != nil {
			s.number--
			return err
		}
	}
}

// ended returns the error of the first line that is not begun.
func (s *stream) ended() error {
	why := "belfry is stopping"
	if cause := context.Cause(s.ending); errors.Is(cause, httpkit.ErrReplaced) {
		why = httpkit.ErrReplaced.Message
	}
	return errs.New(errs.Unavailable, "%s: send this line and those after it again", why)
}

// brokenBody returns the error to reply with when reading the body failed.
func brokenBody(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errs.Wrap(err, errs.Canceled, "nothing arrived within %s", idleTimeout)
	}
	return errs.Wrap(err, errs.Invalid,
		"the body can't be read further: it ends too early, its chunks are malformed, or the connection broke")
}

// interrupt ends a read that waits for the client.
func (s *stream) interrupt() { _ = s.control.SetReadDeadline(time.Now()) }

// renew authenticates the client again from time to time. The stream ends if the client has logged out or has lost
// rights.
func (s *stream) renew(ctx context.Context) (context.Context, error) {
	if time.Since(s.renewed) < renewInterval {
		return ctx, nil
	}
	s.renewed = time.Now()
	return s.calls.Renew(ctx, s.x)
}

// begin begins a line: it starts the creation of its object, or replies with the error of a malformed one.
func (s *stream) begin(ctx context.Context, text []byte, failed error) error {
	if err := s.admit(ctx); err != nil {
		return err
	}
	l := &line{number: s.number, size: len(text), done: make(chan struct{})}
	if failed == nil {
		l.body, failed = object.Parse(text)
	}
	if failed != nil {
		s.enqueue(ctx, s.failed(l.number, failed))
		return nil
	}
	if err := s.weight.Acquire(ctx, int64(l.size)); err != nil {
		return err
	}
	if s.ending.Err() != nil { // while it waited
		s.weight.Release(int64(l.size))
		return s.ended()
	}
	s.follow(l)
	s.creating.Go(func() { s.create(ctx, l) })
	s.enqueue(ctx, l)
	return nil
}

// admit counts a line against the limits of the client, and waits while these are exceeded. Reading slower makes the
// client send slower.
func (s *stream) admit(ctx context.Context) error {
	for {
		err := s.calls.Admit(s.x, httpkit.Write, http.Header{})
		var limited *errs.Error
		if !errors.As(err, &limited) || limited.Kind != errs.Limited {
			return err
		}
		if err := backoff.Sleep(ctx, limited.RetryAfter); err != nil {
			return err
		}
	}
}

// follow makes a line wait for the previous line with the same uuid.
func (s *stream) follow(l *line) {
	if l.uuid, _ = l.body.Text("uuid"); l.uuid == "" {
		return
	}
	l.after, s.byUUID[l.uuid] = s.byUUID[l.uuid], l
	if s.recent = append(s.recent, l); len(s.recent) <= 2*linesInFlight {
		return
	}
	// More lines have begun since than can be in flight.
	old := s.recent[0]
	s.recent[0] = nil
	s.recent = s.recent[1:]
	if s.byUUID[old.uuid] == old {
		delete(s.byUUID, old.uuid)
	}
}

// enqueue passes a line to send; it waits while too many lines are pending.
func (s *stream) enqueue(ctx context.Context, l *line) {
	select {
	case s.pending <- l:
	case <-ctx.Done():
	}
}

// create creates the object of a line.
func (s *stream) create(ctx context.Context, l *line) {
	defer s.weight.Release(int64(l.size))
	defer close(l.done)
	defer func() {
		if p := recover(); p != nil {
			l.reply = s.problem(l.number, errs.Panicked(p))
		}
	}()
	if l.after != nil {
		<-l.after.done
		l.after = nil
	}
	call := store.CallOf(ctx)
	call.NoGet, call.RuleBudget = true, policy.NewBudget()
	q := *s.request
	q.body = l.body
	stored, err := s.act(store.WithCall(ctx, call), &q, "")
	l.body = nil
	if err != nil {
		l.reply = s.problem(l.number, err)
		return
	}
	l.reply = fmt.Appendf(nil, `{"line":%d,"status":%d,"uuid":%s,"revision":%d}`+"\n",
		l.number, http.StatusCreated, object.AppendString(nil, stored.UUID), stored.Revision)
}

// failed returns a line whose reply is a problem.
func (s *stream) failed(number int, err error) *line {
	l := &line{number: number, done: make(chan struct{}), reply: s.problem(number, err)}
	close(l.done)
	return l
}

func (s *stream) problem(number int, err error) []byte {
	status, document := s.x.ProblemOfPart(number, err)
	reply := strconv.AppendInt(append(strconv.AppendInt([]byte(`{"line":`), int64(number), 10), `,"status":`...),
		int64(status), 10)
	reply = append(append(reply, `,"problem":`...), bytes.TrimSpace(document)...)
	return append(reply, "}\n"...)
}

// send sends the replies in the order of the lines, until there are no more or the client does not read them.
func (s *stream) send() error {
	out := bufio.NewWriterSize(s.x, 32<<10)
	flush := func() error {
		_ = s.control.SetWriteDeadline(time.Now().Add(idleTimeout))
		if err := out.Flush(); err != nil {
			return err
		}
		err := s.control.Flush()
		if errors.Is(err, http.ErrNotSupported) {
			return nil
		}
		return err
	}
	for {
		var l *line
		var open bool
		select {
		case l, open = <-s.pending:
		default: // the client may wait for these replies before it sends more
			if err := flushUsed(out, flush); err != nil {
				return err
			}
			l, open = <-s.pending
		}
		if !open {
			return flush()
		}
		select {
		case <-l.done:
		default:
			if err := flushUsed(out, flush); err != nil {
				return err
			}
			<-l.done
		}
		if out.Available() < len(l.reply) {
			_ = s.control.SetWriteDeadline(time.Now().Add(idleTimeout))
		}
		if _, err := out.Write(l.reply); err != nil {
			return err
		}
	}
}

// flushUsed flushes the buffer unless it is empty.
func flushUsed(out *bufio.Writer, flush func() error) error {
	if out.Buffered() == 0 {
		return nil
	}
	return flush()
}
