package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/app/messaging"
	"belfry/pkg/bus"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

const securing = `
listen: 127.0.0.1:0
bus: {%s}
stores:
  Users: {expose: {}}
  Notes: {expose: {}, uuid: client, policy: {default: allow}}
authentication:
  providers:
    email: {postValidation: true, skipEmailValidation: true}
`

// narrowed are the filters of consumers that had others, without the events about the security of accounts.
var narrowed = []string{"events.*.Store.>", "events.*.Register.>", "events.*.Binary.>"}

// filtersOf returns the filters of a consumer of the log.
func filtersOf(t *testing.T, js jetstream.JetStream, name string) []string {
	t.Helper()
	log, err := js.Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	for info := range log.ListConsumers(t.Context()).Info() {
		switch {
		case info.Name != name:
		case info.Config.FilterSubject != "":
			return []string{info.Config.FilterSubject}
		default:
			return info.Config.FilterSubjects
		}
	}
	t.Fatal("no consumer " + name)
	return nil
}

func awaitNarrowed(t *testing.T, js jetstream.JetStream, name string) {
	t.Helper()
	kit.WaitUntil(t, func() error {
		if have := filtersOf(t, js, name); !slices.Equal(have, narrowed) {
			return fmt.Errorf("consumer %s has %v", name, have)
		}
		return nil
	})
}

// A program that creates a consumer while belfry runs receives no more than one that was there at the start: belfry
// narrows the consumer as soon as the bus says that it was created.
func TestAConsumerIsNarrowedWhenItIsCreated(t *testing.T) {
	every := messaging.CheckInterval
	messaging.CheckInterval = kit.Limit // so that nothing but the creation has belfry read which there are
	t.Cleanup(func() { messaging.CheckInterval = every })
	for name, settings := range map[string]string{
		"embedded": `listen: "127.0.0.1:0"`,
		"external": fmt.Sprintf("url: %q",
			natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()}).ClientURL()),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, fmt.Sprintf(securing, settings))
			a := p.start()
			js := natsserver.JetStream(t, a.Bus().ClientURL())
			p.want(a, "POST", "/notes", `{"uuid":"first"}`, http.StatusCreated)
			for _, c := range []jetstream.ConsumerConfig{
				{Durable: "all", FilterSubject: "events.>"}, {Durable: "unset"},
				{Durable: "any", FilterSubject: "events.*.*.>"},
				{Durable: "pushed", FilterSubjects: []string{">"}, DeliverSubject: "deliver"},
				{Durable: "security", FilterSubject: "events.*.Auth.>"},
			} {
				c.AckPolicy = jetstream.AckExplicitPolicy
				var err error
				if c.DeliverSubject != "" {
					_, err = js.CreatePushConsumer(t.Context(), bus.StreamEvents, c)
				} else {
					_, err = js.CreateConsumer(t.Context(), bus.StreamEvents, c)
				}
				if err != nil {
					t.Fatal(c.Durable, err)
				}
				if c.Durable != "security" {
					awaitNarrowed(t, js, c.Durable)
				}
			}
			if have := filtersOf(t, js, "security"); !slices.Equal(have, []string{"events.*.Auth.>"}) {
				t.Errorf("a consumer that names the events has %v", have)
			}
			p.want(a, "POST", "/auth/email", `{"register":true,"login":"ada@example.com","password":"a fine password"}`,
				http.StatusNoContent)
			p.want(a, "POST", "/auth/email", `{"login":"ada@example.com","password":"a wrong password"}`,
				http.StatusForbidden)
			p.want(a, "POST", "/notes", `{"uuid":"last"}`, http.StatusCreated)
			for _, consumer := range []string{"all", "unset", "any"} {
				if got := receivedUntil(t, js, consumer, "last"); slices.ContainsFunc(got,
					func(name string) bool { return strings.HasPrefix(name, "Auth.") }) {
					t.Errorf("consumer %s received %v", consumer, got)
				}
			}
		})
	}
}

// receivedUntil returns the names of the events that a consumer delivers up to one of an object.
func receivedUntil(t *testing.T, js jetstream.JetStream, consumer, uuid string) (names []string) {
	t.Helper()
	c, err := js.Consumer(t.Context(), bus.StreamEvents, consumer)
	if err != nil {
		t.Fatal(err)
	}
	for {
		m, err := c.Next(natsserver.Wait()...)
		if err != nil {
			t.Fatal(err)
		}
		var e struct{ Event, UUID string }
		if err := json.Unmarshal(m.Data(), &e); err != nil {
			t.Fatal(err)
		}
		if names = append(names, e.Event); e.UUID == uuid {
			return names
		}
	}
}

// However many consumers are created, belfry reads them a few times a second.
func TestAStormOfConsumersIsNarrowed(t *testing.T) {
	every := messaging.CheckInterval
	messaging.CheckInterval = kit.Limit
	t.Cleanup(func() { messaging.CheckInterval = every })
	p := newPlace(t, fmt.Sprintf(securing, `listen: "127.0.0.1:0"`))
	a := p.start()
	js := natsserver.JetStream(t, a.Bus().ClientURL())
	log, err := js.Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	var reads atomic.Int64
	if _, err := js.Conn().Subscribe("$JS.API.CONSUMER.LIST."+bus.StreamEvents,
		func(*nats.Msg) { reads.Add(1) }); err != nil {
		t.Fatal(err)
	}
	if err := js.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	const n = 150
	for i := range n {
		if _, err := js.CreateConsumer(t.Context(), bus.StreamEvents,
			jetstream.ConsumerConfig{Durable: fmt.Sprint("c", i), FilterSubject: "events.>",
				MemoryStorage: true}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		kit.WaitUntil(t, func() error {
			c, err := log.Consumer(t.Context(), fmt.Sprint("c", i))
			if err == nil && !slices.Equal(c.CachedInfo().Config.FilterSubjects, narrowed) {
				err = fmt.Errorf("%v", c.CachedInfo().Config.FilterSubjects)
			}
			return err
		})
	}
	// A list has 256 consumers, so each reading is one request.
	if got, most := reads.Load(), int64(time.Since(began)/messaging.NarrowPause)+2; got > most {
		t.Errorf("the consumers were read %d times, more than %d", got, most)
	}
}

// The server says nothing of a consumer that is widened, so belfry reads the consumers now and then.
func TestAConsumerIsNarrowedWhenItIsWidened(t *testing.T) {
	checkBusOften(t)
	p := newPlace(t, fmt.Sprintf(securing, `listen: "127.0.0.1:0"`))
	a := p.start()
	js := natsserver.JetStream(t, a.Bus().ClientURL())
	config := jetstream.ConsumerConfig{Durable: "audit", AckPolicy: jetstream.AckExplicitPolicy,
		FilterSubject: "events.*.Store.>"}
	if _, err := js.CreateConsumer(t.Context(), bus.StreamEvents, config); err != nil {
		t.Fatal(err)
	}
	config.FilterSubject = "events.>"
	for range 3 { // the first time belfry may read the consumers because of the creation
		if _, err := js.UpdateConsumer(t.Context(), bus.StreamEvents, config); err != nil {
			t.Fatal(err)
		}
		awaitNarrowed(t, js, "audit")
	}
}

// Where only an admin may change consumers, the log names the one that is wide, once; a user who may not receive what
// the server says of consumers finds it by reading them.
func TestAWideConsumerThatBelfryMayNotChangeIsLogged(t *testing.T) {
	checkBusOften(t)
	s := natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir(), Users: []*server.User{
		{Username: "admin", Password: "secret"},
		{Username: "belfry", Password: "secret", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: []string{"$JS.API.CONSUMER.CREATE.EVENTS.wide",
				"$JS.API.CONSUMER.CREATE.EVENTS.wide.>"}},
			Subscribe: &server.SubjectPermission{Deny: []string{"$JS.EVENT.>"}},
		}},
	}})
	refusals := &refusals{of: `"$JS.API.CONSUMER.CREATE.EVENTS.wide"`}
	s.SetLogger(refusals, false, false)
	p := newPlace(t, fmt.Sprintf(securing, fmt.Sprintf("url: %q, user: belfry, password: secret", s.ClientURL())))
	p.start()
	js := natsserver.JetStream(t, s.ClientURL(), nats.UserInfo("admin", "secret"))
	if _, err := js.CreateConsumer(t.Context(), bus.StreamEvents,
		jetstream.ConsumerConfig{Durable: "wide", AckPolicy: jetstream.AckExplicitPolicy,
			FilterSubject: "events.>"}); err != nil {
		t.Fatal(err)
	}
	// It does not keep belfry from narrowing others.
	if _, err := js.CreateConsumer(t.Context(), bus.StreamEvents,
		jetstream.ConsumerConfig{Durable: "wide-too", AckPolicy: jetstream.AckExplicitPolicy,
			FilterSubject: "events.>"}); err != nil {
		t.Fatal(err)
	}
	awaitNarrowed(t, js, "wide-too")
	const says = "a listener may receive events about the security of accounts"
	kit.WaitUntil(t, func() error {
		if logged := p.logged.String(); !strings.Contains(logged, says) ||
			!strings.Contains(logged, "consumer wide of stream EVENTS") ||
			!strings.Contains(logged, "belfry bus setup") {
			return fmt.Errorf("logged: %s", logged)
		}
		return nil
	})
	if logged := p.logged.String(); strings.Contains(logged, "the bus reports an error") {
		t.Errorf("a right that belfry does without is reported: %s", logged)
	}
	// The server logs each attempt that it refuses, so belfry reads on which consumers there are, and tries once.
	var reads atomic.Int64
	if _, err := js.Conn().Subscribe("$JS.API.CONSUMER.LIST."+bus.StreamEvents, func(*nats.Msg) { reads.Add(1) }); err != nil {
		t.Fatal(err)
	}
	kit.WaitUntil(t, func() error {
		if n := reads.Load(); n < 3 {
			return fmt.Errorf("the consumers were read %d times more", n)
		}
		return nil
	})
	if n := refusals.n.Load(); n != 1 {
		t.Errorf("the server has refused to narrow the consumer %d times", n)
	}
}

// refusals counts what a server refuses to have published on subjects.
type refusals struct {
	of string
	n  atomic.Int64
}

func (r *refusals) Errorf(format string, v ...any) {
	if text := fmt.Sprintf(format, v...); strings.Contains(text, "Publish Violation") && strings.Contains(text, r.of) {
		r.n.Add(1)
	}
}

func (*refusals) Noticef(string, ...any) {}

func (*refusals) Warnf(string, ...any) {}

func (*refusals) Fatalf(string, ...any) {}

func (*refusals) Debugf(string, ...any) {}

func (*refusals) Tracef(string, ...any) {}
