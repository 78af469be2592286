package workers

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/internal/prom"
	"belfry/listeners/aggregate"
	"belfry/listeners/cascade"
	"belfry/listeners/copies"
	"belfry/listeners/mail"
	"belfry/listeners/mapping"
	"belfry/listeners/sweep"
	"belfry/pkg/app/serving"
	"belfry/pkg/missed"
)

// LogWatch detects events that leave the log before a listener has handled them. It does the work of the workers for
// these events, and sends the mails of the listener of mails, each in a process with the role. The sweeper needs no
// repair: it reads all contents at intervals.
type LogWatch struct {
	Served  *serving.Current
	Roles   serving.Roles
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Filling *Filling
	Copies  *CopyLag

	watch *missed.Watch // nil in a process without the roles mapping, cascade and mail
}

// Part returns the functions that start and stop it.
func (w *LogWatch) Part() serving.Part {
	return serving.Part{Name: "the watch of the log", Start: w.start, Check: w.missedEvents,
		Stop: func(context.Context) error {
			if w.watch != nil {
				w.watch.Close()
			}
			return nil
		}}
}

// Missed returns what listeners have missed, as far as this process watches the log.
func (w *LogWatch) Missed() []missed.Status {
	if w.watch == nil {
		return nil
	}
	return w.watch.Missed()
}

func (w *LogWatch) start(_ context.Context, first *serving.Generation) (err error) {
	var repairs []missed.Repair
	if w.Roles.Has(mapping.Name) || w.Roles.Has(cascade.Name) {
		repairs = append(repairs, missed.Repair{
			Consumers: []string{mapping.Name, copies.Name, aggregate.Name, cascade.Name}, Do: w.RepairAll,
		})
	}
	if w.Roles.Has(mail.Name) {
		repairs = append(repairs, missed.Repair{Consumers: []string{mail.Name}, Do: w.sendUnsent})
	}
	w.watch, err = missed.Start(missed.Options{
		Bus: first.Bus, Conn: first.Bus.Conn(), Store: first.Set.Store(config.PositionStore), Logger: w.Log,
		BuiltIn: w.builtIn, Ignored: []string{sweep.Name},
		Repairs: repairs, Copies: w.Copies.All,
	})
	if err == nil {
		w.Metrics.MustRegister(w.collector())
	}
	return err
}

// builtIn returns the names of the built-in listeners of the current configuration that need each event.
func (w *LogWatch) builtIn() (names []string) {
	for _, spec := range w.Served.Now().Plan.Specs() {
		if spec.Name != sweep.Name {
			names = append(names, spec.Name)
		}
	}
	return names
}

// RepairAll repeats all work that missed events could have caused, concurrently with the workers, in a process with the
// role mapping. The loss identifies the repair, so that another process continues it after a crash.
func (w *LogWatch) RepairAll(ctx context.Context, loss string) error {
	if err := w.Filling.Again(ctx, loss); err != nil {
		return err
	}
	w.Log.Info("the changes that the missed events would have caused are repaired")
	return nil
}

// MailPatience is how long the repair leaves mails to the listener; shorter in a test.
var MailPatience = 15 * time.Second

// sendUnsent sends the mails whose requests no listener has received. Without mails in the configuration it does
// nothing.
func (w *LogWatch) sendUnsent(ctx context.Context, _ string) error {
	now, done := w.Served.Use()
	defer done()
	sent, err := now.Auth.Post.SendUnsent(ctx, MailPatience)
	if sent > 0 {
		w.Log.Info("mails whose events were missed are sent", "mails", sent)
	}
	return err
}

// missedEvents lists the listeners that have missed events. Requests are still served, but an operator has to act.
func (w *LogWatch) missedEvents() []string {
	var all []string
	for _, s := range w.Missed() {
		if !s.Open() {
			continue
		}
		// Without the number of events, which would reveal the activity to strangers.
		text := "listener " + s.Consumer + " has missed events: the log is " + string(s.Reason)
		switch s.Consumer {
		case mapping.Name, copies.Name, aggregate.Name, cascade.Name:
			text += "; what it maintains is being repaired"
		case mail.Name:
			text += "; mails that it has not sent are being sent"
		}
		all = append(all, text)
	}
	return all
}

var (
	missedDesc = prometheus.NewDesc("belfry_listener_missed",
		"1 while a listener has missed events, which are neither repaired nor confirmed.", []string{"listener"}, nil)
	countDesc = prometheus.NewDesc("belfry_listener_missed_events", "Events that a listener has missed, which are "+
		"neither repaired nor confirmed: an estimate, see docs/guides/listeners.md.", []string{"listener"}, nil)
)

// collector are the metrics of listeners that have missed events.
func (w *LogWatch) collector() prometheus.Collector {
	return prom.Computed(func(_ context.Context, values prom.Values) {
		for _, s := range w.Missed() {
			open, events := 0.0, 0.0
			if s.Open() {
				open, events = 1, float64(s.Events)
			}
			values.Gauge(missedDesc, open, s.Consumer)
			values.Gauge(countDesc, events, s.Consumer)
		}
	}, missedDesc, countDesc)
}
