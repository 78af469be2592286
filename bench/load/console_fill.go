package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
)

// parentOfAll is the object that has all children.
const parentOfAll = "p-00000000"

// filled is what there is in a belfry whose console is measured.
type filled struct {
	admin         string // header of an admin who is logged in
	updated       string // uuid of the object with the long history
	user, address string
	logged        int // events
}

// fillConsole makes the objects, users and dead letters, all by belfry itself but for the dead letters. The object with
// the long history is updated when half of the others are there, so its events are in the middle of the log.
func (b *bench) fillConsole(ctx context.Context, s *server, address string, size consoleSize) (f *filled, err error) {
	f = &filled{updated: fmt.Sprintf("i-%08d", size.objects/2)}
	if f.admin, err = register(ctx, s, 0); err != nil {
		return nil, err
	}
	if err := b.command(ctx, s, "user", "admin", "user0@example.com"); err != nil {
		return nil, err
	}
	item := func(c *client, i int) error {
		return expect(c, 201, "POST", "/items", object(fmt.Sprintf("i-%08d", i), fmt.Sprintf(`"n":%d,`, i)))
	}
	for _, part := range []struct {
		count int
		one   func(c *client, i int) error
	}{
		{1, create("/parents", "p")},
		{size.children, func(c *client, i int) error {
			return expect(c, 201, "POST", "/children", object(fmt.Sprintf("c-%08d", i), `"parent":"`+parentOfAll+`",`))
		}},
		{size.objects/2 + 1, item},
		{size.updates, func(c *client, i int) error {
			return expect(c, 200, "PUT", "/items/"+f.updated,
				[]byte(fmt.Sprintf(`{"note":"the note of update %d"}`, i)))
		}},
		{size.objects - size.objects/2 - 1, func(c *client, i int) error { return item(c, size.objects/2+1+i) }},
		{size.users, func(c *client, i int) error {
			c.header = f.admin + "Content-Type: application/x-www-form-urlencoded\r\n"
			form := url.Values{"login": {fmt.Sprintf("reader%d@example.com", i)}, "name": {fmt.Sprintf("Reader %d", i)},
				"validated": {"true"}}
			if i < size.mails {
				form.Set("mail", "true")
			}
			return expect(c, 303, "POST", "/console/users", []byte(form.Encode()))
		}},
	} {
		if _, err := closedLoop(s.base, size.conns, part.count, part.one); err != nil {
			return nil, err
		}
		// A server that is slow, over one connection, is not to fall behind until requests run into timeouts.
		if err := published(s, 0); err != nil {
			return nil, err
		}
	}
	if err := pollUntil(s, "/parents/"+parentOfAll,
		func(body []byte) bool { return entries(body) == size.children }); err != nil {
		return nil, err
	}
	f.address = fmt.Sprintf("reader%d@example.com", size.users/2)
	if err := f.find(s); err != nil {
		return nil, err
	}
	conn, err := bus.Open(ctx,
		bus.Options{URL: "nats://" + address, Unmanaged: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if err := deadLetters(ctx, conn, size.letters); err != nil {
		return nil, err
	}
	log, err := conn.JetStream().Stream(ctx, bus.StreamEvents)
	if err != nil {
		return nil, err
	}
	f.logged = int(log.CachedInfo().State.Msgs) //nolint:gosec // a count
	return f, awaitMail(s, f.admin)
}

// find finds the uuid of a user, as the console does.
func (f *filled) find(s *server) error {
	c, err := dial(s.base)
	if err != nil {
		return err
	}
	defer c.close()
	c.header = f.admin
	const users = "/console/objects/Users/object/"
	if f.user = strings.TrimPrefix(link(c, "/console/objects/Idents/object/"+f.address+"_email", users),
		users); f.user == "" {
		return fmt.Errorf("the ident of %s has no link to its user", f.address)
	}
	return nil
}

// awaitMail waits until the worker has written the mail.
func awaitMail(s *server, admin string) error {
	c, err := dial(s.base)
	if err != nil {
		return err
	}
	defer c.close()
	c.header = admin
	for deadline := time.Now().Add(time.Minute); link(c, "/console/mails",
		"/console/mails/") == ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return errors.New("the mail to a new user is not written after a minute")
		}
	}
	return nil
}

// deadLetters publishes dead letters as a listener does, of two listeners.
func deadLetters(ctx context.Context, b *bus.Bus, count int) error {
	js := b.JetStream()
	for i := range count {
		uuid := fmt.Sprintf("i-%08d", i)
		name := "mapping"
		if i%100 == 99 {
			name = "others"
		}
		e := event.Envelope{ID: "letter-" + uuid, Event: event.StoreSaved, Store: "Items", UUID: uuid, Revision: 1,
			Origin: event.OriginHTTP, Object: object(uuid, "")}
		m := &nats.Msg{Subject: bus.DeadPrefix + name, Data: e.Append(nil), Header: nats.Header{
			listener.HeaderReason:   {"the service that is asked replied 500"},
			listener.HeaderListener: {name},
			listener.HeaderAttempts: {"5"},
			listener.HeaderSubject:  {event.Subject(e.Event, e.Store, e.UUID)},
			listener.HeaderSequence: {strconv.Itoa(i + 1)},
			listener.HeaderTime:     {time.Now().UTC().Format(time.RFC3339Nano)},
		}}
		if _, err := js.PublishMsgAsync(m); err != nil {
			return err
		}
	}
	select {
	case <-js.PublishAsyncComplete():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
