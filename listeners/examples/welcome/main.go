// Command welcome completes users when they register: each gets a name to be
// shown, and the time at which they were welcomed.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"belfry/pkg/client"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/listener"
)

const (
	attempts = 20              // about five minutes
	ackWait  = 5 * time.Second // after which the events in flight of a killed process are redelivered
	closing  = 5 * time.Second
)

func main() {
	name := flag.String("name", "welcome", "name of the listener")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unexpected argument %q: there are flags alone\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, release) // a second signal ends the program at once
	if err := listen(ctx, *name); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// listen is listener.Main for a handler that needs the connection too.
func listen(ctx context.Context, name string) error {
	b, err := listener.Connect(ctx, name, slog.Default())
	if err != nil {
		return err
	}
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		_ = b.Close(bounded)
	}()
	w := welcome{name: name, stores: client.New(b.JetStream().Conn())}
	return listener.Run(ctx, b, slog.Default(), listener.Spec{
		Name:        name,
		Events:      []event.Name{event.Register},
		Handler:     w.complete,
		MaxAttempts: attempts,
		AckWait:     ackWait,
	})
}

type welcome struct {
	name   string
	stores *client.Client
}

// complete completes the user of an event. The update depends on the event only,
// and its idempotency key is the listener's name and the event's id: the event may
// be redelivered, the update takes effect once.
func (w welcome) complete(ctx context.Context, e *listener.Event) error {
	var user struct{ Name, DisplayName string }
	if err := json.Unmarshal(e.User, &user); err != nil {
		return listener.Permanent(fmt.Errorf("the event's user can't be read: %w", err))
	}
	fields := map[string]string{"uuid": e.UUID, "welcomed": e.Time}
	switch {
	case user.DisplayName != "": // the form had one
	case user.Name != "":
		fields["displayName"] = user.Name
	default:
		fields["displayName"] = "Somebody new"
	}
	_, err := w.stores.Store(e.Store).Update(ctx, fields, client.WithKey(w.name+"."+e.ID))
	switch errs.KindOf(err) {
	case errs.NotFound:
		return nil // the user was deleted
	case errs.Invalid, errs.Denied, errs.TooLarge:
		return listener.Permanent(err)
	}
	return err
}
