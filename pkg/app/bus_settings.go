package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/bus"
	"belfry/pkg/listener"
)

// busCheckInterval is how often the settings of streams and consumers are compared with those that belfry's promises depend
// on: anybody with the rights of an administrator of the bus can change them while belfry runs.
// Shorter in tests.
var busCheckInterval = 10 * time.Second

const busCheckTimeout = 10 * time.Second

// busSettings holds what of the bus is not as belfry's promises need it.
type busSettings struct {
	mu    sync.Mutex
	lacks []string
}

func (b *busSettings) get() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lacks
}

// set replaces what was found before, and reports whether it differs.
func (b *busSettings) set(lacks []string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	differ := !slices.Equal(b.lacks, lacks)
	b.lacks = lacks
	return differ
}

// startBusCheck compares the settings of the bus now and then. It changes none: two processes whose configurations differ would
// take turns.
func (a *App) startBusCheck(context.Context) error {
	var first sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	first.Go(func() { a.checkBus(ctx) })
	a.onStop("the first check of the bus's settings", func(context.Context) error {
		cancel()
		first.Wait()
		return nil
	})
	a.every(busCheckInterval, "the check of the bus's settings", func(ctx context.Context) bool {
		a.checkBus(ctx)
		return true
	})
	return nil
}

// checkBus compares the settings of the streams, of the consumers of this process's workers, and whether any listener is
// paused. What can't be read is as before: the state of the bus says why.
func (a *App) checkBus(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, busCheckTimeout)
	defer cancel()
	var lacks, details []string
	err := a.askBus(ctx, func(ctx context.Context) error {
		p := a.now().plan
		o, err := p.BusOptions()
		if err != nil {
			return err
		}
		found, err := bus.SetupStreams(ctx, a.bus, o.Events, o.Replicas, true)
		if err != nil {
			return err
		}
		mine := map[string]bool{}
		for _, spec := range p.Specs() {
			if !a.has(spec.Name) {
				continue
			}
			mine[spec.Name] = true
			consumers, err := listener.Setup(ctx, a.bus, spec, true)
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
		// Without the permission to list them, other listeners are for others to watch.
		if all, err := a.listeners(ctx); err == nil {
			for _, l := range all {
				if !l.PausedUntil.IsZero() && !mine[l.Name] {
					lacks = append(lacks, "listener "+l.Name+" is paused and receives nothing: `nats consumer resume` ends that")
					details = append(details, l.Name+" is paused until "+l.PausedUntil.UTC().Format(time.RFC3339))
				}
			}
		}
		return nil
	})
	if err != nil || !a.busSettings.set(lacks) {
		return
	}
	if len(lacks) == 0 {
		a.log.Info("the bus is as belfry needs it again")
		return
	}
	a.log.Warn("the bus is not as belfry needs it: `belfry bus setup --check` says what to do", "differs", details, "because", lacks)
}

// busShortcomings lists the settings of the bus with which a promise may not hold, for everybody: without their values.
func (a *App) busShortcomings() []string { return a.busSettings.get() }

var busSettingsDesc = prometheus.NewDesc("belfry_bus_shortcomings", "Settings of the bus's streams and consumers with which a promise of belfry may not hold, and paused listeners.", nil, nil)
