package missed

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

// The subjects of requests of commands, which any process with a watch answers.
const (
	SubjectList    = "listeners.missed"  // what listeners have missed
	SubjectConfirm = "listeners.confirm" // that what a listener has missed is dealt with
)

const (
	queue          = "belfry"
	requestTimeout = 5 * time.Second
)

// confirmation is the request on SubjectConfirm.
type confirmation struct {
	Consumers []string `json:"consumers"`
}

// reply is the reply to both requests.
type reply struct {
	Missed []Status  `json:"missed"`
	Copies []CopyLag `json:"copies,omitempty"` // to the first
	Error  string    `json:"error,omitempty"`
}

func (w *Watch) subscribe() error {
	if w.opts.Conn == nil {
		return nil
	}
	for subject, answer := range map[string]func(*nats.Msg) reply{
		SubjectList:    w.list,
		SubjectConfirm: w.confirm,
	} {
		sub, err := w.opts.Conn.QueueSubscribe(subject, queue, func(m *nats.Msg) {
			if !bus.IsInbox(m.Reply) {
				return
			}
			if data, err := json.Marshal(answer(m)); err == nil {
				_ = m.Respond(data)
			}
		})
		if err != nil {
			return errs.Wrap(err, errs.Unavailable, "subscribing to %s", subject)
		}
		w.subs = append(w.subs, sub)
	}
	return nil
}

// confirm records that what consumers have missed is dealt with.
func (w *Watch) confirm(m *nats.Msg) reply {
	var c confirmation
	if err := json.Unmarshal(m.Data, &c); err != nil || len(c.Consumers) == 0 {
		return reply{Error: `the request is not {"consumers": [...]}`}
	}
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	known := false
	err := w.change(ctx, func(s *state) bool {
		known = false
		for _, name := range c.Consumers {
			p := s.Consumers[name]
			if p == nil || p.Missed == nil {
				continue
			}
			known = true
			if p.Missed.Open() {
				p.Missed.Confirmed = time.Now().UTC()
			}
		}
		return known
	})
	switch {
	case err != nil:
		w.log.Warn("a confirmation can't be stored", "error", err)
		return reply{Error: "the confirmation can't be stored now; try again"}
	case !known:
		return reply{Error: "the listener has missed nothing, or does not exist: `belfry listener list` shows what " +
			"listeners have missed"}
	}
	return reply{Missed: w.Missed()}
}

// Fetch asks a belfry on the bus what listeners have missed. It reports errs.Unavailable
// if none replies. With a context of UntilDenied for SubjectList it does not wait where the user may not ask.
func Fetch(ctx context.Context, conn *nats.Conn) ([]Status, error) {
	r, err := request(ctx, conn, SubjectList, struct{}{})
	return r.Missed, err
}

// Confirm has a belfry on the bus record that what these consumers have missed is dealt
// with. The context is as that of Fetch, for SubjectConfirm.
func Confirm(ctx context.Context, conn *nats.Conn, consumers []string) error {
	_, err := request(ctx, conn, SubjectConfirm, confirmation{consumers})
	return err
}

func request(ctx context.Context, conn *nats.Conn, subject string, body any) (r reply, err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m, err := conn.RequestWithContext(ctx, subject, data)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return r, errs.Wrap(err, errs.Unavailable,
			"no belfry with the role mapping, cascade or mail is on the bus, or its user may not subscribe to %s",
			subject)
	case err != nil && errors.Is(context.Cause(ctx), bus.ErrPermissionDenied):
		return r, errs.New(errs.Unavailable, "the user of the bus lacks the permission for %s: with nats.conf, what "+
			"listeners have missed is for the user admin (--user admin)", subject)
	case err != nil:
		return r, errs.Wrap(err, errs.Unavailable, "no belfry replies on %s", subject)
	}
	if err := json.Unmarshal(m.Data, &r); err != nil {
		return r, errs.Wrap(err, errs.Internal, "the reply on %s can't be read", subject)
	}
	if r.Error != "" {
		return r, errs.New(errs.Conflict, "%s", r.Error)
	}
	slices.SortFunc(r.Missed, func(a, b Status) int { return strings.Compare(a.Consumer, b.Consumer) })
	return r, nil
}
