// Package events serves the events of package sse at /events.
//
// # The path of a stream
//
//	GET /events
//	  httpkit.Router     filters: CORS, cross-site request forgery
//	  Handler.serve  parses the query: stores, events, last event id
//	  sse.Hub.Serve  admits the client, and calls back: identify, send
//	  stream         authenticates the client again each time the hub asks; writes with a deadline
package events

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"belfry/pkg/account/sessions"
	"belfry/pkg/api/sse"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// maxNames bounds the stores, and the events, that a client names.
const maxNames = 1000

const (
	path       = "/events"
	streamType = "text/event-stream"

	// writeTimeout bounds each write to a client, stopTimeout those that are in
	// progress when the server stops.
	writeTimeout = 30 * time.Second
	stopTimeout  = 500 * time.Millisecond
)

// Handler serves the route /events.
type Handler struct {
	hub      *sse.Hub
	calls    *httpkit.Calls
	stopping context.Context // ends all streams
}

// NewHandler returns the handler that serves the events of a hub until stopping ends.
func NewHandler(stopping context.Context, calls *httpkit.Calls, hub *sse.Hub) *Handler {
	return &Handler{hub, calls, stopping}
}

// serve is GET /events: a stream of events until the client disconnects or is
// disconnected. HEAD has the headers alone.
func (h *Handler) serve(x *httpkit.Exchange) error {
	subscription, err := parseSubscription(x.Request)
	if err == nil {
		err = h.hub.Validate(subscription)
	}
	if err != nil {
		return err
	}
	s := &stream{Exchange: x, handler: h, control: http.NewResponseController(x.ResponseWriter)}
	if x.Request.Method == http.MethodHead {
		viewer, err := s.identify(x.Request.Context())
		if err == nil {
			err = h.hub.Authorize(x.Request.Context(), subscription, viewer)
		}
		if err != nil {
			return err
		}
		beginStream(x)
		return nil
	}
	defer httpkit.OnEnd(h.stopping, s.expire)()
	return h.hub.Serve(x.Request.Context(), sse.Client{
		Subscription: subscription, Address: x.Address, Begin: func() { beginStream(x) }, Send: s.send,
		Identify: s.identify, Stop: h.stopping.Done(),
	})
}

// parseSubscription parses the query. An unknown parameter is Invalid: ignoring a filter would return too much.
func parseSubscription(r *http.Request) (sse.Subscription, error) {
	var s sse.Subscription
	query, err := httpkit.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return s, err
	}
	for name, values := range query {
		switch name {
		case "store":
			s.Stores, err = splitNames(name, values, maxNames)
		case "event":
			s.Events, err = splitNames(name, values, maxNames)
		case "uuid":
			s.UUIDs, err = splitNames(name, values, sse.MaxUUIDs)
		case "filter":
			s.Filter, err = once(name, values)
		case "fields":
			s.Fields, err = once(name, values)
		case "lastEventId":
			s.After, err = once(name, values)
		default:
			err = errs.New(errs.Invalid,
				"the query parameter %q is unknown; store, event, uuid, filter, fields and lastEventId are known",
				httpkit.Truncate(name, 64))
		}
		if err != nil {
			return s, err
		}
	}
	// A browser that reconnects sends the header and repeats the query.
	if header := r.Header.Values("Last-Event-Id"); len(header) > 0 {
		s.After = header[0]
	}
	return s, nil
}

// once returns the value of a parameter that may not be repeated.
func once(name string, values []string) (string, error) {
	if len(values) > 1 {
		return "", errs.New(errs.Invalid, "the query parameter %s occurs more than once", name)
	}
	return values[0], nil
}

// splitNames returns the names in the values of a parameter that may be repeated,
// each a list separated by commas.
func splitNames(name string, values []string, most int) ([]string, error) {
	var all []string
	for _, value := range values {
		for one := range strings.SplitSeq(value, ",") {
			if one = strings.TrimSpace(one); one == "" {
				return nil, errs.New(errs.Invalid, "the query parameter %s contains an empty name", name)
			}
			if len(all) == most {
				return nil, errs.New(errs.Invalid, "the query parameter %s contains more than %d names", name, most)
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// beginStream sends the headers of a stream, which proxies must not cache, buffer or
// compress.
func beginStream(x *httpkit.Exchange) {
	x.SetHeader("Content-Type", streamType)
	x.SetHeader("Cache-Control", "no-store, no-transform")
	x.SetHeader("X-Accel-Buffering", "no")
	x.MarkStream()
	x.WriteHeader(http.StatusOK)
}

// stream is the reply to one client.
type stream struct {
	*httpkit.Exchange
	handler *Handler
	control *http.ResponseController
	user    bool // the stream belongs to a user
}

// send sends at once, within writeTimeout.
func (s *stream) send(data []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if s.handler.stopping.Err() != nil {
		s.expire()
	}
	if _, err := s.Write(data); err != nil {
		return err
	}
	return s.control.Flush()
}

// expire prevents a client that reads nothing from delaying the server's stop.
func (s *stream) expire() { _ = s.control.SetWriteDeadline(time.Now().Add(stopTimeout)) }

// identify returns the current owner of the request's cookie or token. A stream
// that belonged to a user ends with the session: it does not become anonymous.
func (s *stream) identify(ctx context.Context) (*sse.Viewer, error) {
	session, err := s.handler.calls.Reauthenticate(s.Exchange)
	if err != nil {
		return nil, err
	}
	if session == nil {
		if s.user {
			return nil, errs.Wrap(sessions.ErrInvalidToken, errs.Unauthenticated, "the session has ended")
		}
		return &sse.Viewer{}, ctx.Err()
	}
	s.user = true
	return &sse.Viewer{
		Revision: session.User.Revision, Audit: s.handler.calls.MayAudit(ctx, session),
		User: session.Visible, UUID: session.User.UUID, Session: session.ID, Rules: session.ForRules().WithoutStepUp(),
		Key: session.User.UUID + " " + strconv.FormatUint(session.User.Revision, 10) + " " + strconv.Itoa(session.AAL) +
			" " + strconv.FormatInt(session.AuthenticatedAt.UnixMicro(), 10),
	}, nil
}
