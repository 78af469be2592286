package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"belfry/pkg/wire"
	"belfry/test/chaos/history"
)

// attempt is how long one attempt waits for its reply, which may be lost. The next one has the same key.
const attempt = 3 * time.Second

// connectBus connects to the bus, and stays connected through its outages.
func connectBus(url string, more ...nats.Option) (*nats.Conn, error) {
	return nats.Connect(url,
		append(more, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
			nats.RetryOnFailedConnect(true))...)
}

// overBus sends a write with an idempotency key until there is a final reply or the time is over. The
// request id is its key as well, so that all attempts have one. It returns what is wrong with a reply.
func overBus(ctx context.Context, conn *nats.Conn, op *history.Op) (wrong string) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	m := message(op)
	for attempts := 1; ; attempts++ {
		one, done := context.WithTimeout(ctx, attempt)
		r, err := conn.RequestMsgWithContext(one, m)
		done()
		if err == nil && replied(op, r, attempts) {
			if op.Outcome == history.Refused && isTaken(op) {
				wrong = noOther
			}
			return wrong
		}
		if err == nil && op.Status != http.StatusServiceUnavailable && op.Status != http.StatusTooManyRequests {
			wrong = fmt.Sprintf("status %d over the bus", op.Status)
		}
		if err != nil {
			op.Problem = err.Error()
		}
		select {
		case <-ctx.Done():
			op.Outcome = history.Unknown
			return wrong
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// message is the request for an op.
func message(op *history.Op) *nats.Msg {
	req, name := wire.Request{UUID: op.Object.UUID, Revision: op.IfMatch}, wire.Update
	switch op.Kind {
	case history.Create:
		name = wire.Save
	case history.Delete:
		name = wire.Delete
	}
	if op.Kind != history.Delete {
		req.Object = encode("", op.Fields)
	}
	data, err := json.Marshal(req)
	if err != nil {
		panic(err) // it consists of JSON
	}
	return &nats.Msg{
		Subject: wire.Subject(op.Object.Store, name), Data: data,
		Header: nats.Header{wire.HeaderKey: {op.Request}, wire.HeaderID: {op.Request}},
	}
}

// replied records a reply, and reports whether it is final. Of a request that was repeated the reply can
// be about a later state, or can't say whether the write was made.
func replied(op *history.Op, m *nats.Msg, attempts int) bool {
	if code := m.Header.Get(micro.ErrorCodeHeader); code != "" {
		status, err := strconv.Atoi(code)
		if err != nil {
			status = http.StatusInternalServerError
		}
		op.Status, op.Problem = status, problemOf(m.Data)
		switch {
		case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests || status >= 500:
			return false
		case status == http.StatusConflict && attempts > 1:
			op.Outcome = history.Unknown
		default:
			op.Outcome = history.Refused
		}
		return true
	}
	var r wire.Reply
	if err := json.Unmarshal(m.Data, &r); err != nil {
		op.Problem = errors.Join(errors.New("the reply can't be decoded"), err).Error()
		return false
	}
	op.Outcome, op.Status, op.Problem = history.Done, http.StatusOK, ""
	if attempts == 1 {
		op.Revision, op.Body = r.Revision, r.Object
	}
	return true
}
