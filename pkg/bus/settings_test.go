package bus_test

import (
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/test/kit/natsserver"
)

// A release of NATS with a new setting needs a decision about it.
func TestEverySettingOfAStreamIsWantedOrLeftToAnAdministrator(t *testing.T) {
	known := map[string]int{}
	for _, s := range bus.StreamSettings {
		known[s.Key]++
	}
	for key := range bus.KeptSettings {
		known[key]++
	}
	config := reflect.TypeFor[jetstream.StreamConfig]()
	for i := range config.NumField() {
		key, _, _ := strings.Cut(config.Field(i).Tag.Get("json"), ",")
		if known[key] != 1 {
			t.Errorf("%s is in %d of the tables of settings, want 1", key, known[key])
		}
		delete(known, key)
	}
	for key := range known {
		t.Errorf("no stream has a setting %s", key)
	}
}

// unwanted is what a stream can have in place of what belfry wants.
type unwanted struct {
	key      string // that is reported
	stream   string // EVENTS if it is ""
	change   func(*jetstream.StreamConfig)
	update   bool // it can't be created so
	recreate bool
}

func unwantedSettings() []unwanted {
	type config = jetstream.StreamConfig
	return []unwanted{
		{key: "subjects", change: func(c *config) { c.Subjects = []string{"events.1.>"} }},
		{key: "description", change: func(c *config) { c.Description = "mine" }},
		{key: "storage", change: func(c *config) { c.Storage = jetstream.MemoryStorage }, recreate: true},
		{key: "retention", change: func(c *config) { c.Retention = jetstream.InterestPolicy }},
		{key: "retention", change: func(c *config) { c.Retention = jetstream.WorkQueuePolicy }, recreate: true},
		{key: "retention", stream: bus.StreamRetry, change: func(c *config) { c.Retention = jetstream.LimitsPolicy },
			recreate: true},
		{key: "retention", stream: bus.StreamDead, change: func(c *config) { c.Retention = jetstream.InterestPolicy }},
		{key: "discard", change: func(c *config) { c.Discard = jetstream.DiscardNew }},
		{key: "discard", stream: bus.StreamRetry, change: func(c *config) { c.Discard = jetstream.DiscardOld }},
		{key: "discard_new_per_subject", change: func(c *config) {
			c.Discard, c.MaxMsgsPerSubject, c.DiscardNewPerSubject = jetstream.DiscardNew, 1, true
		}},
		{key: "max_age", change: func(c *config) { c.MaxAge = time.Hour }},
		{key: "max_age", stream: bus.StreamRetry, change: func(c *config) { c.MaxAge = time.Hour }},
		{key: "max_bytes", change: func(c *config) { c.MaxBytes = 1 << 20 }},
		{key: "max_msgs", change: func(c *config) { c.MaxMsgs = 10 }},
		{key: "max_msgs", stream: bus.StreamDead, change: func(c *config) { c.MaxMsgs = 10 }},
		{key: "max_msgs_per_subject", change: func(c *config) { c.MaxMsgsPerSubject = 1 }},
		{key: "max_msgs_per_subject", stream: bus.StreamDead, change: func(c *config) { c.MaxMsgsPerSubject = 1 }},
		{key: "max_msg_size", change: func(c *config) { c.MaxMsgSize = 1024 }},
		{key: "duplicate_window", change: func(c *config) { c.Duplicates = time.Second }},
		{key: "no_ack", change: func(c *config) { c.NoAck = true }},
		{key: "sealed", change: func(c *config) { c.Sealed = true }, update: true, recreate: true},
		{key: "deny_delete", stream: bus.StreamDead, change: func(c *config) { c.DenyDelete = true }, recreate: true},
		{key: "mirror", change: func(c *config) {
			c.Mirror, c.Subjects, c.AllowBatchPublish = &jetstream.StreamSource{Name: "OTHER"}, nil, false
		}, recreate: true},
		{key: "sources", change: func(c *config) { c.Sources = []*jetstream.StreamSource{{Name: "OTHER"}} }},
		{key: "subject_transform", change: func(c *config) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "events.>", Destination: "gone.>"}
		}},
		{key: "republish", change: func(c *config) {
			c.RePublish = &jetstream.RePublish{Source: "events.>", Destination: "everybody.>"}
		}},
		{key: "allow_rollup_hdrs", change: func(c *config) { c.AllowRollup = true }},
		{key: "subject_delete_marker_ttl", change: func(c *config) { c.SubjectDeleteMarkerTTL = time.Minute }},
		{key: "allow_msg_counter", change: func(c *config) { c.AllowMsgCounter = true }, recreate: true},
		{key: "allow_msg_schedules", change: func(c *config) { c.AllowMsgSchedules = true }, recreate: true},
		{key: "persist_mode", change: func(c *config) { c.PersistMode = jetstream.AsyncPersistMode }, recreate: true},
		{key: "consumer_limits", change: func(c *config) { c.ConsumerLimits.InactiveThreshold = time.Hour }},
		{key: "consumer_limits", change: func(c *config) { c.ConsumerLimits.MaxAckPending = 10 }},
		{key: "allow_direct", change: func(c *config) { c.AllowDirect = false }},
		{key: "allow_batched", change: func(c *config) { c.AllowBatchPublish = false }},
	}
}

// Whatever a stream has instead of what a promise depends on is reported, changed if the server does that, and
// otherwise reported until the stream has been recreated. TestClusterOfThreeSurvivesTheLossOfOneServer has the
// replicas.
func TestSettingsThatPromisesDependOnAreAsWanted(t *testing.T) {
	url := natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()}).ClientURL()
	b, err := bus.Dial(bus.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	covered := map[string]bool{"num_replicas": true}
	for _, c := range unwantedSettings() {
		if c.stream == "" {
			c.stream = bus.StreamEvents
		}
		covered[c.key] = true
		t.Run(c.stream+" "+c.key, func(t *testing.T) { checkUnwanted(t, b, c) })
	}
	for _, s := range bus.StreamSettings {
		if !covered[s.Key] {
			t.Errorf("%s is not tested", s.Key)
		}
	}
}

func checkUnwanted(t *testing.T, b *bus.Client, c unwanted) {
	t.Helper()
	js := b.JetStream()
	if err := js.DeleteStream(t.Context(), c.stream); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Fatal(err)
	}
	states(t, b, bus.Limits{}, false)
	config := streamConfig(t, js, c.stream)
	if c.update {
		c.change(&config)
		if _, err := js.UpdateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	} else {
		if err := js.DeleteStream(t.Context(), c.stream); err != nil {
			t.Fatal(err)
		}
		c.change(&config)
		if _, err := js.CreateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	drifted, updated, after := bus.Drifted, bus.Updated, bus.InSync
	if c.recreate {
		drifted, updated, after = bus.Recreate, bus.Recreate, bus.Recreate
	}
	for _, step := range []struct {
		check bool
		want  bus.State
	}{{true, drifted}, {true, drifted}, {false, updated}, {true, after}, {false, after}} {
		d := diffOf(t, b, c.stream, step.check)
		if d.State != step.want {
			t.Fatalf("with check %v it is %s (%s), want %s", step.check, d.State, d.Detail, step.want)
		}
		if d.State == bus.InSync {
			continue
		}
		if !slices.Contains(d.Keys, c.key) {
			t.Errorf("the %s is not among %q", c.key, d.Keys)
		}
		if step.check && c.key != "description" &&
			!strings.Contains(strings.Join(d.Shortcomings(), "\n"), "has another "+c.key) {
			t.Errorf("the shortcomings lack %s: %q", c.key, d.Shortcomings())
		}
		if recreate := strings.Join(d.Commands, "\n"); (d.State == bus.Recreate) != strings.Contains(recreate,
			"nats stream rm "+c.stream) {
			t.Errorf("it is %s, with the commands %q", d.State, recreate)
		}
	}
	if c.recreate { // as its commands say
		if err := js.DeleteStream(t.Context(), c.stream); err != nil {
			t.Fatal(err)
		}
		if d := diffOf(t, b, c.stream, false); d.State != bus.Created {
			t.Errorf("recreated it is %s: %s", d.State, d.Detail)
		}
	}
	if d := diffOf(t, b, c.stream, true); d.NeedsSetup() {
		t.Errorf("in the end it is %s: %s", d.State, d.Detail)
	}
}

func streamConfig(t *testing.T, js jetstream.JetStream, name string) jetstream.StreamConfig {
	t.Helper()
	s, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().Config
}

func diffOf(t *testing.T, b bus.Requester, stream string, check bool) bus.Diff {
	t.Helper()
	all, err := bus.SetupStreams(t.Context(), b, bus.Limits{}, 0, check)
	if err != nil {
		t.Fatal(err)
	}
	return all[slices.IndexFunc(all, func(d bus.Diff) bool { return d.What == "stream "+stream })]
}

// What is an administrator's to choose stays as it is.
func TestSetupKeepsWhatNoPromiseDependsOn(t *testing.T) {
	url := natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()}).ClientURL()
	b, err := bus.Dial(bus.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	mine := bus.StreamConfigs(bus.Limits{})[0]
	mine.Compression, mine.MaxConsumers, mine.FirstSeq, mine.Metadata = jetstream.S2Compression, 100, 7,
		map[string]string{"team": "a"}
	mine.DenyDelete, mine.DenyPurge, mine.AllowMsgTTL, mine.AllowAtomicPublish, mine.MaxMsgSize = true, true, true,
		true, bus.MaxPayload
	if _, err := b.JetStream().CreateStream(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if d := diffOf(t, b, bus.StreamEvents, false); d.State != bus.InSync {
		t.Errorf("it is %s: %s", d.State, d.Detail)
	}
	mine.MaxMsgs = 5
	if _, err := b.JetStream().UpdateStream(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if d := diffOf(t, b, bus.StreamEvents, false); d.State != bus.Updated {
		t.Errorf("it is %s: %s", d.State, d.Detail)
	}
	got := streamConfig(t, b.JetStream(), bus.StreamEvents)
	if got.Compression != mine.Compression || got.MaxConsumers != 100 || got.FirstSeq != 7 ||
		got.Metadata["team"] != "a" || !got.DenyDelete || !got.DenyPurge ||
		!got.AllowMsgTTL || !got.AllowAtomicPublish || got.MaxMsgSize != bus.MaxPayload {
		t.Errorf("it has %+v", got)
	}
}

// belfry starts with a stream that must be recreated, says so, and publishes as far as that is possible.
func TestAStreamThatMustBeCreatedAnewIsWarnedAboutAndUsed(t *testing.T) {
	url := natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()}).ClientURL()
	config := bus.StreamConfigs(bus.Limits{})[0]
	config.Storage = jetstream.MemoryStorage
	if _, err := natsserver.JetStream(t, url).CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	var lines logged
	b := open(t, bus.Options{URL: url, Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	eventually(t, func() bool { return b.Ready(t.Context()) == nil })
	if lines.count("must be recreated") != 1 || lines.count("storage Memory instead of File") != 1 {
		t.Errorf("the log has\n%s", lines.String())
	}
	if err := b.Publish(t.Context(), events("e", 1, 10)); err != nil {
		t.Error(err)
	}
}
