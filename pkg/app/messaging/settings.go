package messaging

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/prom"
	"belfry/pkg/app/part"
	"belfry/pkg/app/serving"
	"belfry/pkg/bus"
	"belfry/pkg/listener"
)

// CheckInterval is how often the settings of streams and consumers are compared with the settings that belfry's
// promises need: any administrator of the bus can change them while belfry runs. Shorter in tests.
var CheckInterval = 10 * time.Second

const busCheckTimeout = 10 * time.Second

// SettingsCheck compares the settings of the bus at intervals. It changes none, since two processes with different
// configurations would undo each other's changes.
type SettingsCheck struct {
	Served  *serving.Current
	Roles   serving.Roles
	Log     *slog.Logger
	Metrics prometheus.Registerer

	running part.Background
	wake    chan struct{} // a reload may have changed what the bus lacks
	mu      sync.Mutex
	lacks   []string // the settings of the bus that break belfry's promises
}

// Part returns the functions that start, reload and stop it.
func (c *SettingsCheck) Part() serving.Part {
	return serving.Part{Name: "the check of the bus's settings", Start: c.start, Stop: c.running.Stop, Check: c.get,
		Reload: func(context.Context, *serving.Generation, *serving.Generation) (part.Change, error) {
			return part.Change{Apply: func() {
				select {
				case c.wake <- struct{}{}:
				default: // a check is due already
				}
			}}, nil
		}}
}

func (c *SettingsCheck) start(context.Context, *serving.Generation) error {
	c.wake = make(chan struct{}, 1)
	c.running.Go(func(ctx context.Context) {
		for ctx.Err() == nil {
			c.check(ctx)
			pause(ctx, c.wake, time.After(CheckInterval))
		}
	})
	c.Metrics.MustRegister(c.collector())
	return nil
}

// get lists the settings of the bus with which a promise may not hold. Every client may see them, so they have no
// values.
func (c *SettingsCheck) get() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lacks
}

// set replaces the previous findings, and reports whether they differ.
func (c *SettingsCheck) set(lacks []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	differ := !slices.Equal(c.lacks, lacks)
	c.lacks = lacks
	return differ
}

// check reads what the bus lacks. If a read fails, the previous result stays; the state of the bus gives the reason.
// New findings count once they are read twice with one configuration: while a reload is prepared, and until its
// listeners run, consumers receive the events of both configurations.
func (c *SettingsCheck) check(ctx context.Context) {
	now := c.Served.Now()
	lacks, details, err := c.read(ctx, now)
	if err == nil && len(lacks) > 0 && !slices.Equal(lacks, c.get()) {
		first := lacks
		pause(ctx, nil, time.After(CheckInterval/10))
		lacks, details, err = c.read(ctx, now)
		if !slices.Equal(first, lacks) {
			return // the next check reads it again
		}
	}
	if err != nil || c.Served.Now() != now || !c.set(lacks) {
		return
	}
	if len(lacks) == 0 {
		c.Log.Info("the bus meets belfry's requirements again")
		return
	}
	c.Log.Warn("the bus does not meet belfry's requirements: `belfry bus setup --check` prints what to do",
		"differs", details, "because", lacks)
}

// read compares the settings of the streams, of the consumers of this process's workers, and whether any listener is
// paused.
func (c *SettingsCheck) read(ctx context.Context, now *serving.Generation) (lacks, details []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, busCheckTimeout)
	defer cancel()
	err = Do(ctx, now.Bus, func(ctx context.Context) error {
		p := now.Plan
		o, err := p.BusOptions()
		if err != nil {
			return err
		}
		found, err := bus.SetupStreams(ctx, now.Bus, o.Events, o.Replicas, true)
		if err != nil {
			return err
		}
		mine := map[string]bool{}
		for _, spec := range p.Specs() {
			if !c.Roles.Has(spec.Name) {
				continue
			}
			mine[spec.Name] = true
			consumers, err := listener.Setup(ctx, now.Bus, spec, true)
			if err != nil {
				return err
			}
			found = append(found, consumers...)
		}
		for _, d := range found {
			if s := d.Shortcomings(); len(s) > 0 {
				lacks, details = append(lacks, s...), append(details, d.What+": "+d.Detail)
			}
		}
		// Without the permission to list other listeners, other processes check them.
		if all, err := Listeners(ctx, now.Bus); err == nil {
			for _, l := range all {
				if !l.PausedUntil.IsZero() && !mine[l.Name] {
					lacks = append(lacks,
						"listener "+l.Name+" is paused and receives nothing: `nats consumer resume` ends that")
					details = append(details, l.Name+" is paused until "+l.PausedUntil.UTC().Format(time.RFC3339))
				}
			}
		}
		return nil
	})
	return lacks, details, err
}

var busSettingsDesc = prometheus.NewDesc("belfry_bus_shortcomings",
	"Settings of the bus's streams and consumers with which a promise of belfry may not hold, and paused listeners.",
	nil, nil)

func (c *SettingsCheck) collector() prometheus.Collector {
	return prom.Computed(func(_ context.Context, values prom.Values) {
		values.Gauge(busSettingsDesc, float64(len(c.get())))
	}, busSettingsDesc)
}
