package bus_test

import (
	"errors"
	"log/slog"
	"testing"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
)

func TestUnmanagedStreamsAreNeitherReadNorChanged(t *testing.T) {
	url := production(t)
	log := slog.New(slog.DiscardHandler)
	unmanaged := open(t,
		bus.Options{URL: url, Unmanaged: true, Logger: log, Auth: bus.Auth{User: "admin", Password: password("admin")}})
	eventually(t, func() bool { return unmanaged.Ready(t.Context()) == nil })
	if err := unmanaged.Publish(t.Context(), events("e", 1, 10)); !errors.Is(err, errs.Unavailable) {
		t.Errorf("without streams publish reports %v", err)
	}

	front := open(t, bus.Options{URL: url, Auth: bus.Auth{User: "admin", Password: password("admin")},
		Events: bus.Limits{MaxMessages: 1234}})
	eventually(t, func() bool { return front.Ready(t.Context()) == nil && unmanaged.Ready(t.Context()) == nil })
	if err := unmanaged.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	stream, err := unmanaged.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().Config.MaxMsgs; n != 1234 {
		t.Errorf("the stream keeps %d events, want the 1234 of its owner", n)
	}
}

func TestAnEmbeddedServerCannotBeUnmanaged(t *testing.T) {
	_, err := bus.Open(t.Context(),
		bus.Options{Server: embedded.New(embedded.Options{Folder: t.TempDir()}), Unmanaged: true})
	if !errors.Is(err, errs.Invalid) {
		t.Errorf("got %v, want Invalid", err)
	}
}
