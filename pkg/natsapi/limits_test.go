package natsapi

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/config"
	"belfry/pkg/errs"
	"belfry/pkg/wire"
)

func TestClientsAreTheActorOrTheInboxOfTheConnection(t *testing.T) {
	actor := func(name string) nats.Header { return nats.Header{name: {"ann"}} }
	for _, c := range []struct {
		reply, want string
		header      nats.Header
	}{
		{"_INBOX.connection.1", "inbox _INBOX.connection", nil},
		{"_INBOX_client.connection.2", "inbox _INBOX_client.connection", nil},
		{"_INBOX.connection.3", "user ann", actor(wire.HeaderActor)},
		{"_INBOX.another.4", "user ann", actor("belfry-actor")},
		{"", "inbox ", nil},
		{"_R_.server.5", "account AUDIT", nats.Header{"Nats-Request-Info": {`{"acc":"AUDIT","rtt":1}`}}},
		{"_R_.server.6", "user ann", nats.Header{"Nats-Request-Info": {`{"acc":"AUDIT"}`}, wire.HeaderActor: {"ann"}}},
		{"_R_.server.7", "inbox _R_.server", nil},
		{"_INBOX.connection.8", "inbox _INBOX.connection", nats.Header{"Nats-Request-Info": {`{"acc":"FORGED"}`}}},
	} {
		if got := clientOf(&nats.Msg{Reply: c.reply, Header: c.header}); got != c.want {
			t.Errorf("%q %v: %q, want %q", c.reply, c.header, got, c.want)
		}
	}
}

func TestRequestsOfAClientAreLimited(t *testing.T) {
	now := time.Now()
	request := &nats.Msg{Reply: "_INBOX.a.1", Data: make([]byte, 1<<20)}
	another := &nats.Msg{Reply: "_INBOX.b.1", Data: make([]byte, 1<<20)}
	for name, c := range map[string]struct {
		limits config.BusRates
		want   int
	}{
		"requests": {config.BusRates{Requests: 2}, 20}, "bytes": {config.BusRates{Bytes: 4 << 20}, 40},
		"both": {config.BusRates{Requests: 3, Bytes: 2 << 20}, 20}, "none": {config.BusRates{}, 100},
	} {
		l, n := newLimits(c.limits, limits{}), 0
		var err error
		for ; n < 100 && err == nil; n++ {
			err = l.admit(request, now)
		}
		if err != nil {
			n--
		}
		var limited *errs.Error
		if n != c.want ||
			err != nil && (!errors.As(err, &limited) || limited.Kind != errs.Limited || limited.RetryAfter <= 0) {
			t.Errorf("%s: %d admitted, want %d, then %v", name, n, c.want, err)
		}
		if err := l.admit(another, now); err != nil {
			t.Errorf("%s: another client: %v", name, err)
		}
		if err := l.admit(request, now.Add(time.Second)); err != nil {
			t.Errorf("%s: a second later: %v", name, err)
		}
	}
}
