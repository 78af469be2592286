package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/listeners/mapping"
	"belfry/pkg/bus"
	"belfry/test/backing"
)

// The fill of the arrays, which begins some time after the first start of a deployment, has nothing to do here. At this
// rate nobody notices it.
const scaleConfiguration = `
listen: 127.0.0.1:0
metrics: {token: the-metrics-of-load}
bus: {url: '%s'}
backends: {default: %s}
log: {level: error}
fillRate: 1
stores:
  Items: {expose: {}}
  Parents: {expose: {}}
  Children:
    expose: {}
    map:
      Parents: {key: parent, target: children, fields: "title, year", maxBytes: 4MiB}
  Authors: {expose: {}}
  Books:
    expose: {}
    references: {author: Authors}
    copies: {authorName: author.name}
  Rooms: {expose: {}}
  Boxes:
    expose: {}
    map:
      Rooms: {key: room, aggregates: {things: sum(things), weight: sum(weight)}}
  Things:
    expose: {}
    map:
      Boxes: {key: box, aggregates: {things: count(), weight: sum(year)}}
`

// deployment is belfry as several processes on an external bus and a database.
type deployment struct {
	scale           *scale
	processors      []int
	fronts, workers []*server
	bus             *backing.Host
	monitor         string // URL of the bus's
	log             *eventLog
	home            string
	config          string
	children        int // that were created
	books           int // that were created, with a copy each
}

// within starts a deployment with a new bus and a new, empty part of the database, and ends it when do returns without
// an error and `belfry verify` finds that copies are equal to their objects.
func (s *scale) within(ctx context.Context, fronts, workers int, url string, do func(*deployment) error) error {
	return backing.WithHost(ctx, func(h *backing.Host) (err error) {
		d := &deployment{scale: s, processors: s.processors, bus: h, home: h.TempDir()}
		h.On(s.processors)
		nats := backing.NATS(h)
		d.monitor, d.config = nats.Monitor, filepath.Join(d.home, "belfry.yaml")
		s.deployments++
		text := fmt.Sprintf(scaleConfiguration, nats.URL, fmt.Sprintf(s.backend, url, s.deployments))
		if err := os.WriteFile(d.config, []byte(text), 0o600); err != nil {
			return err
		}
		if _, err := d.run(ctx, "bus", "setup"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.stop()) }()
		if err := d.start(ctx, fronts, workers); err != nil {
			return err
		}
		if d.log, err = openLog(ctx, nats.URL[len("nats://"):]); err != nil {
			return err
		}
		defer d.log.Close()
		if err := do(d); err != nil {
			return err
		}
		return d.verify(ctx)
	})
}

// start starts the processes of belfry. Each has one of the processors, in turn.
func (d *deployment) start(ctx context.Context, fronts, workers int) error {
	for _, of := range []struct {
		all   *[]*server
		role  string
		count int
	}{{&d.workers, mapping.Name, workers}, {&d.fronts, "front", fronts}} {
		for i := range of.count {
			data := filepath.Join(d.home, fmt.Sprintf("%s-%d", of.role, i+1))
			on := d.processors[i%len(d.processors) : i%len(d.processors)+1]
			s, err := startOn(ctx, on, "belfry", nil, d.scale.bench.belfry, "serve", "--config", d.config, "--data",
				data, "--role", of.role)
			if s != nil {
				s.data = data
				*of.all = append(*of.all, s)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *deployment) stop() (err error) {
	for _, s := range append(d.fronts, d.workers...) {
		err = errors.Join(err, s.stop())
	}
	return err
}

// bases are the addresses of the fronts.
func (d *deployment) bases() []string {
	var all []string
	for _, s := range d.fronts {
		all = append(all, s.base)
	}
	return all
}

// events is how many there have ever been in the log.
func (d *deployment) events(ctx context.Context) (uint64, error) {
	info, err := d.log.stream.Info(ctx)
	if err != nil {
		return 0, err
	}
	return info.State.LastSeq, nil
}

// The position of the workers is polled at this interval.
const positionPoll = 5 * time.Millisecond

// await polls the position of a listener until it is right, for two minutes at most.
func (d *deployment) await(ctx context.Context, listener, what string, right func(*jetstream.ConsumerInfo) bool) error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(positionPoll) {
		consumer, err := d.log.stream.Consumer(ctx, listener)
		if err == nil && right(consumer.CachedInfo()) {
			return nil
		}
		if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
	}
	return fmt.Errorf("after two minutes it is not so: %s", what)
}

// applied waits until a listener has ever received so many events, and applied and acknowledged all.
func (d *deployment) applied(ctx context.Context, listener string, events int) error {
	return d.await(ctx, listener, "the workers have applied all events", func(c *jetstream.ConsumerInfo) bool {
		return c.Delivered.Consumer >= uint64(events) && c.NumPending == 0 && c.NumAckPending == 0
	})
}

// hold has the bus deliver no events to a listener, until release is called.
func (d *deployment) hold(ctx context.Context, listener string) error {
	_, err := d.log.stream.PauseConsumer(ctx, listener, time.Now().Add(time.Hour))
	return err
}

// release ends that, and waits until the bus delivers events.
func (d *deployment) release(ctx context.Context, listener string) error {
	consumer, err := d.log.stream.Consumer(ctx, listener)
	if err != nil {
		return err
	}
	before := consumer.CachedInfo().Delivered.Consumer
	if err := bus.Resume(ctx, d.log.js, bus.StreamEvents, listener); err != nil {
		return err
	}
	return d.await(ctx, listener, "the bus delivers events to the workers",
		func(c *jetstream.ConsumerInfo) bool { return c.Delivered.Consumer > before })
}

// held waits until so many events wait for a listener.
func (d *deployment) held(ctx context.Context, listener string, events int) error {
	return d.await(ctx, listener, fmt.Sprintf("%d events wait for the workers", events),
		func(c *jetstream.ConsumerInfo) bool { return c.NumPending >= uint64(events) })
}

// verify runs `belfry verify`, and counts what it has compared.
func (d *deployment) verify(ctx context.Context) error {
	out, err := d.run(ctx, "verify", "--json", "--data", filepath.Join(d.home, "verify"))
	if err != nil {
		return err
	}
	var report struct{ Entries, Copied int }
	if err := json.Unmarshal(out, &report); err != nil {
		return err
	}
	if report.Entries != d.children || report.Copied != d.books {
		return fmt.Errorf("belfry verify found %d entries and %d objects with copies, want %d and %d", report.Entries,
			report.Copied, d.children, d.books)
	}
	return nil
}

// run runs a command of belfry with the configuration of the deployment.
func (d *deployment) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, d.scale.bench.belfry, append(args, "--config", d.config)...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		out = append(out, exit.Stderr...)
	}
	if err != nil {
		return nil, fmt.Errorf("belfry %s: %w\n%s", args[0], err, out)
	}
	return out, nil
}
