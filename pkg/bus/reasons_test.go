package bus_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// says returns an error unless a bus is unavailable for a reason.
func says(t *testing.T, b *bus.Bus, reason string) {
	t.Helper()
	eventually(t, func() bool {
		err := b.Ready(t.Context())
		return errors.Is(err, errs.Unavailable) && strings.Contains(err.Error(), reason)
	})
}

// What a server says when it refuses a connection is the reason for as long as it says so, whatever the attempts end
// with besides.
func TestTheReasonOfAServerOutlastsTheEndOfItsConnections(t *testing.T) {
	refused := errors.New("dial tcp 127.0.0.1:4222: connect: connection refused")
	for text, want := range map[string]string{
		"nats: Authorization Violation":                     "rejects the user",
		"nats: User Authentication Expired":                 "have expired",
		"nats: User Authentication Revoked":                 "are revoked",
		"nats: Account Authentication Expired":              "account's credentials",
		"nats: maximum connections exceeded":                "max_connections",
		"nats: maximum account active connections exceeded": "permits the account",
	} {
		got := bus.Reasons(io.EOF, errors.New(text), io.EOF, refused)
		if got[0] != "EOF" || !strings.Contains(got[1], want) || got[2] != got[1] || got[3] != got[1] ||
			got[4] != refused.Error() {
			t.Errorf("with %s: %q", text, got)
		}
	}
	for _, err := range []error{nats.ErrMaxConnectionsExceeded, nats.ErrAuthExpired} {
		if got := bus.Reasons(err); strings.Contains(got[0], "nats:") {
			t.Errorf("%v is %q", err, got)
		}
	}
}

func TestAFullServerIsTheReason(t *testing.T) {
	s := natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir(), MaxConn: 1})
	other, err := nats.Connect(s.ClientURL(), nats.Timeout(kit.Limit))
	if err != nil {
		t.Fatal(err)
	}
	b := open(t, bus.Options{URL: s.ClientURL()})
	says(t, b, "as many connections as its max_connections permits")
	other.Close()
	eventually(t, func() bool { return b.Ready(t.Context()) == nil })
}

// A password that is changed on the server ends the connection; the one that a reload has read is used next.
func TestARotatedPasswordIsTheReasonUntilItIsKnown(t *testing.T) {
	for name, way := range map[string]struct {
		old, next bus.Auth
		set       func(*server.Options, bus.Auth)
	}{
		"password": {bus.Auth{User: "belfry", Password: "old"}, bus.Auth{User: "belfry", Password: "new"},
			func(o *server.Options, a bus.Auth) { o.Username, o.Password = a.User, a.Password }},
		"token": {bus.Auth{Token: "old"}, bus.Auth{Token: "new"},
			func(o *server.Options, a bus.Auth) { o.Authorization = a.Token }},
	} {
		t.Run(name, func(t *testing.T) {
			options := func(a bus.Auth, port int, folder string) *server.Options {
				o := &server.Options{JetStream: true, StoreDir: folder, Port: port}
				way.set(o, a)
				return o
			}
			folder := t.TempDir()
			s := natsserver.Serve(t, options(way.old, 0, folder))
			b := open(t, bus.Options{URL: s.ClientURL(), Auth: way.old})
			eventually(t, func() bool { return b.Ready(t.Context()) == nil })
			port := s.Addr().(*net.TCPAddr).Port
			s.Shutdown()
			s.WaitForShutdown()
			natsserver.Serve(t, options(way.next, port, folder))
			says(t, b, "the server rejects the user")
			b.SetAuth(way.next)
			eventually(t, func() bool { return b.Ready(t.Context()) == nil })
		})
	}
}

func TestAServerWithoutJetStreamIsTheReason(t *testing.T) {
	var lines logged
	b := open(t, bus.Options{URL: natsserver.Serve(t, &server.Options{}).ClientURL(),
		Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	says(t, b, "the bus has no streams: the server, or the user's account, has no JetStream")
	eventually(t, func() bool { return lines.count("has no JetStream") > 0 })
	before := b.Conn().Stats().OutMsgs
	eventually(t, func() bool { return b.Conn().Stats().OutMsgs >= before+3 }) // it was tried again
	if n := lines.count("the bus's streams are not ready"); n != 1 {
		t.Errorf("it is logged %d times:\n%s", n, lines.String())
	}
}

// Whoever uses a new bus right after it was opened finds its streams.
func TestANewBusHasItsStreamsAtOnce(t *testing.T) {
	b := open(t,
		bus.Options{URL: natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()}).ClientURL()})
	if _, err := b.JetStream().Stream(t.Context(), bus.StreamEvents); err != nil {
		t.Error(err)
	}
}

func TestAServerThatAcceptsSmallMessagesAloneIsWarnedAbout(t *testing.T) {
	for limit, want := range map[int32]int{16 << 10: 1, 1 << 20: 0} {
		var lines logged
		b := open(t, bus.Options{
			URL: natsserver.Serve(t,
				&server.Options{JetStream: true, StoreDir: t.TempDir(), MaxPayload: limit}).ClientURL(),
			Logger: slog.New(slog.NewTextHandler(&lines, nil)),
		})
		eventually(t, func() bool { return b.Ready(t.Context()) == nil })
		if n := lines.count("accepts no messages as large as an event may be"); n != want {
			t.Errorf("with %d bytes there are %d warnings", limit, n)
		}
	}
}
