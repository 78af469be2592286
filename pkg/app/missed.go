package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/listeners/cascade"
	"belfry/listeners/mail"
	"belfry/listeners/mapping"
	"belfry/listeners/sweep"
	"belfry/pkg/missed"
)

// startMissed notices events that leave the log before a listener has handled them, and repairs what the
// workers would have done, and the mails that the listener of mails would have sent; each in a process that can. The sweeper
// needs no repair: it reads all contents by itself now and then.
func (a *App) startMissed(context.Context) error {
	var names []string
	for _, spec := range a.now().plan.specs() {
		if spec.Name != sweep.Name {
			names = append(names, spec.Name)
		}
	}
	var repairs []missed.Repair
	if a.has(mapping.Name) || a.has(cascade.Name) {
		repairs = append(repairs, missed.Repair{Consumers: []string{mapping.Name, cascade.Name}, Do: a.repairAll})
	}
	if a.has(mail.Name) {
		repairs = append(repairs, missed.Repair{Consumers: []string{mail.Name}, Do: a.sendUnsent})
	}
	w, err := missed.Start(missed.Options{
		Bus: a.bus, Conn: a.bus.Conn(), Store: a.now().set.Store(config.PositionStore), Logger: a.log,
		BuiltIn: names, Ignored: []string{sweep.Name},
		Repairs: repairs,
	})
	if err != nil {
		return err
	}
	a.missed = w
	a.onStop("the watch of the log", func(context.Context) error { w.Close(); return nil })
	return nil
}

// repairAll has everything done once more that the events would have changed which workers have missed, beside the workers. A process
// with the role mapping does it. The loss identifies it, so that the next process continues after a crash of this one.
func (a *App) repairAll(ctx context.Context, loss string) error {
	if err := a.filler.Again(ctx, loss); err != nil {
		return err
	}
	a.log.Info("what the missed events would have changed is repaired")
	return nil
}

// mailPatience is how long the repair leaves mails to the listener; shorter in a test.
var mailPatience = 15 * time.Second

// sendUnsent sends the mails whose requests nobody has seen. Without mails in the configuration there are none to send.
func (a *App) sendUnsent(ctx context.Context, _ string) error {
	now, done := a.use()
	defer done()
	sent, err := now.auth.Post.SendUnsent(ctx, mailPatience)
	if sent > 0 {
		a.log.Info("mails whose events were missed are sent", "mails", sent)
	}
	return err
}

// missedEvents lists the listeners that have missed events, which keeps no request from being served and needs the
// attention of an operator.
func (a *App) missedEvents() []string {
	if a.missed == nil {
		return nil
	}
	var all []string
	for _, s := range a.missed.Missed() {
		if !s.Open() {
			continue
		}
		// Without the number of events, from which strangers could tell what happens here.
		text := "listener " + s.Consumer + " has missed events: the log is " + string(s.Reason)
		switch s.Consumer {
		case mapping.Name, cascade.Name:
			text += "; what it maintains is being repaired"
		case mail.Name:
			text += "; mails that it has not sent are being sent"
		}
		all = append(all, text)
	}
	return all
}

var (
	missedDesc = prometheus.NewDesc("belfry_listener_missed", "1 while a listener has missed events, which are neither repaired nor confirmed.", []string{"listener"}, nil)
	countDesc  = prometheus.NewDesc("belfry_listener_missed_events", "Events that a listener has missed, which are neither repaired nor confirmed: an estimate, see docs/guides/listeners.md.", []string{"listener"}, nil)
)

// collectMissed adds the metrics of listeners that have missed events.
func (a *App) collectMissed(gauge func(*prometheus.Desc, float64, ...string)) {
	if a.missed == nil {
		return
	}
	for _, s := range a.missed.Missed() {
		open, events := 0.0, 0.0
		if s.Open() {
			open, events = 1, float64(s.Events)
		}
		gauge(missedDesc, open, s.Consumer)
		gauge(countDesc, events, s.Consumer)
	}
}
