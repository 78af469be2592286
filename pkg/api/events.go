package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/sse"
)

const (
	eventsURL  = "/events"
	streamType = "text/event-stream"

	// A client has so long to take what it is sent, and less when the server
	// stops.
	streamPatience = 30 * time.Second
	streamHurry    = 500 * time.Millisecond
)

// events is GET /events: what happens, as Server-Sent Events, until the client
// goes or has to.
func (s *Server) events(x *exchange) error {
	want, err := wanted(x.req)
	if err == nil {
		err = s.Live.Check(want)
	}
	if err != nil {
		return err
	}
	if x.req.Method == http.MethodHead {
		if _, err := s.session(x); err != nil {
			return err
		}
		x.beginStream()
		return nil
	}
	f := &feed{exchange: x, server: s, control: http.NewResponseController(x.ResponseWriter)}
	defer context.AfterFunc(s.stopping, f.hurry)()
	return s.Live.Serve(x.req.Context(), sse.Client{
		Want: want, Address: x.address, Begin: x.beginStream, Send: f.send, Identify: f.identify, Stop: s.stopping.Done(),
	})
}

// wanted reads what a client asks for. A parameter that is unknown is refused: a
// filter that is overlooked shows too much.
func wanted(r *http.Request) (sse.Want, error) {
	var want sse.Want
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return want, errs.New(errs.Invalid, "the query is not properly percent-encoded")
	}
	last := query["lastEventId"]
	for name, values := range query {
		switch name {
		case "store":
			want.Stores, err = words(name, values)
		case "event":
			want.Events, err = words(name, values)
		case "lastEventId":
		default:
			err = errs.New(errs.Invalid, "the query parameter %q is unknown; store, event and lastEventId are known", cut(name, 64))
		}
		if err != nil {
			return want, err
		}
	}
	if len(last) > 1 {
		return want, errs.New(errs.Invalid, "the query parameter lastEventId is given more than once")
	}
	// A browser that connects anew sends the header and repeats the query.
	if header := r.Header.Values("Last-Event-Id"); len(header) > 0 {
		last = header[:1]
	}
	if len(last) == 0 || last[0] == "" {
		return want, nil
	}
	id, err := strconv.ParseUint(last[0], 10, 64)
	if err != nil {
		return want, errs.New(errs.Invalid, "the last event id must be the id of an event of this stream, a whole number; 0 begins with the oldest event that is kept")
	}
	want.After = &id
	return want, nil
}

// words reads a parameter that may be repeated and may hold several, separated
// by commas.
func words(name string, values []string) ([]string, error) {
	var all []string
	for _, value := range values {
		for word := range strings.SplitSeq(value, ",") {
			if word = strings.TrimSpace(word); word == "" {
				return nil, errs.New(errs.Invalid, "the query parameter %s has an empty name in it", name)
			}
			all = append(all, word)
		}
	}
	return all, nil
}

// beginStream sends the headers of a stream, which no proxy is to keep, to
// collect or to compress.
func (x *exchange) beginStream() {
	x.set("Content-Type", streamType)
	x.set("Cache-Control", "no-store, no-transform")
	x.set("X-Accel-Buffering", "no")
	x.lasting = true
	x.WriteHeader(http.StatusOK)
}

// feed is a stream on its way to a client.
type feed struct {
	*exchange
	server  *Server
	control *http.ResponseController
	known   bool // the stream is somebody's
}

// send sends at once, as far as the client takes it.
func (f *feed) send(data []byte) error {
	_ = f.control.SetWriteDeadline(time.Now().Add(streamPatience))
	if f.server.stopping.Err() != nil {
		f.hurry()
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.control.Flush()
}

// hurry keeps a client that takes nothing from holding up a server that stops.
func (f *feed) hurry() { _ = f.control.SetWriteDeadline(time.Now().Add(streamHurry)) }

// identify says whose stream it is, from the request's cookie or token, as they
// are good now. A stream that was somebody's does not become nobody's.
func (f *feed) identify(ctx context.Context) (*sse.Viewer, error) {
	f.identified = false
	session, err := f.server.session(f.exchange)
	if err != nil {
		return nil, err
	}
	if session == nil {
		if f.known {
			return nil, errs.New(errs.Unauthenticated, "the session has ended")
		}
		return &sse.Viewer{}, ctx.Err()
	}
	f.known = true
	return &sse.Viewer{
		User: session.Visible, UUID: session.User.UUID, Session: session.ID,
		Key: session.User.UUID + " " + strconv.FormatUint(session.User.Revision, 10),
	}, nil
}
