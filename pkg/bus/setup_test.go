package bus_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

// states returns the state of each stream, in their order.
func states(t *testing.T, b bus.Requester, limits bus.Limits, check bool) []bus.State {
	t.Helper()
	found, err := bus.SetupStreams(t.Context(), b, limits, 0, check)
	if err != nil {
		t.Fatal(err)
	}
	var all []bus.State
	for _, f := range found {
		all = append(all, f.State)
		if (f.State == bus.Updated || f.State == bus.Drifted) != (f.Detail != "") {
			t.Errorf("%s is %s: %q", f.What, f.State, f.Detail)
		}
	}
	return all
}

func TestSetupCreatesAndUpdatesStreams(t *testing.T) {
	admin := dial(t, production(t), "admin")
	small := bus.Limits{MaxMessages: 100, MaxAge: time.Hour}
	for i, step := range []struct {
		limits bus.Limits
		check  bool
		want   []bus.State
	}{
		{small, true, []bus.State{bus.Missing, bus.Missing, bus.Missing}},
		{small, false, []bus.State{bus.Created, bus.Created, bus.Created}},
		{small, true, []bus.State{bus.InSync, bus.InSync, bus.InSync}},
		{small, false, []bus.State{bus.InSync, bus.InSync, bus.InSync}},
		{bus.Limits{}, true, []bus.State{bus.Drifted, bus.InSync, bus.InSync}},
		{bus.Limits{}, true, []bus.State{bus.Drifted, bus.InSync, bus.InSync}},
		{bus.Limits{}, false, []bus.State{bus.Updated, bus.InSync, bus.InSync}},
		{bus.Limits{}, true, []bus.State{bus.InSync, bus.InSync, bus.InSync}},
	} {
		if got := states(t, admin, step.limits, step.check); !slices.Equal(got, step.want) {
			t.Fatalf("step %d finds %v, want %v", i, got, step.want)
		}
	}
}

func TestSetupKeepsOtherSettingsOfAnAdministrator(t *testing.T) {
	admin := dial(t, production(t), "admin")
	states(t, admin, bus.Limits{}, false)
	s, err := admin.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	config := s.CachedInfo().Config
	config.Compression, config.MaxMsgs = jetstream.S2Compression, 7
	if _, err := admin.JetStream().UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if got := states(t, admin, bus.Limits{}, false); got[0] != bus.Updated {
		t.Fatalf("found %v", got)
	}
	if s, err = admin.JetStream().Stream(t.Context(), bus.StreamEvents); err != nil {
		t.Fatal(err)
	}
	if c := s.CachedInfo().Config; c.Compression != jetstream.S2Compression ||
		c.MaxMsgs != bus.DefaultLimits().MaxMessages {
		t.Errorf("the stream is %+v", c)
	}
}

func TestSetupWithoutPermissionFailsAtOnce(t *testing.T) {
	url := production(t)
	found, err := bus.SetupStreams(t.Context(), dial(t, url, "front"), bus.Limits{}, 0, false)
	if len(found) > 0 || !errors.Is(err, errs.Unavailable) ||
		!strings.Contains(err.Error(), "stream EVENTS can't be set up: it is missing and can't be created") {
		t.Errorf("found %v, %v", found, err)
	}
	prepare(t, url)
	found, err = bus.SetupStreams(t.Context(), dial(t, url, "front"), bus.Limits{MaxMessages: 3}, 0, false)
	if len(found) > 0 || err == nil || !strings.Contains(err.Error(), "max_msgs 1000000 instead of 3") {
		t.Errorf("found %v, %v", found, err)
	}
	if found, err = bus.SetupStreams(t.Context(), dial(t, url, "front"), bus.Limits{}, 0, false); err != nil ||
		len(found) != 3 {
		t.Errorf("with permission to read only, setup finds %v, %v", found, err)
	}
}

// A role without the permission to create streams waits for them, logs what to
// do, and continues by itself once the admin has created them.
func TestBusWaitsForMissingStreams(t *testing.T) {
	url := production(t)
	var lines logged
	front := open(t, bus.Options{
		URL: url, Auth: bus.Auth{User: "front", Password: password("front")},
		Logger: slog.New(slog.NewTextHandler(&lines, nil)),
	})
	eventually(t, func() bool { return lines.count("run `belfry bus setup` with an admin's credentials") > 0 })
	if err := front.Ready(t.Context()); !errors.Is(err, errs.Unavailable) ||
		!strings.Contains(err.Error(), "stream EVENTS") || !strings.Contains(err.Error(), "belfry bus setup") {
		t.Errorf("without streams: %v", err)
	}
	if lines.count("the bus reports an error") > 0 {
		t.Errorf("the same error is logged twice:\n%s", lines.String())
	}
	prepare(t, url)
	eventually(t, func() bool { return front.Ready(t.Context()) == nil })
	if err := front.Publish(t.Context(), events("e", 3, 10)); err != nil {
		t.Error(err)
	}
}
