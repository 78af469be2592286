package examine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/internal/count"
	"belfry/pkg/app/command"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/pkg/listener/replay"
	"belfry/pkg/missed"
	"belfry/pkg/operations/doctor"
)

// AskedBus has the methods of a connection that the checks of the bus need; *bus.Bus and *bus.Client implement it.
type AskedBus interface {
	listener.Bus
	Conn() *nats.Conn
}

// BusExamination checks one bus as one user.
type BusExamination struct {
	Plan *plan.Plan
	User string // its name, for people
	Own  bool   // it is the user of the configuration
	Now  func() time.Time

	Workers []string // belfry's own listeners for which the user's permissions are checked
	Serves  bool     // the checking process does this work

	// Connect returns a connection. Each check has its own connection: the server reports a denied permission to the
	// connection, without the request.
	Connect func() (b AskedBus, done func(), err error)
}

// busChecks check the bus. A bus inside belfry without a port is checked by the serving process.
func (e *Examination) busChecks() []doctor.Check {
	o := e.Bus
	if o == nil {
		if len(e.config.Bus.URL) == 0 {
			return nil // it is inside the serving process, which checks it
		}
		configured, err := open.BusClient(e.config)
		if err != nil {
			return []doctor.Check{{Area: AreaBus, Ask: func(context.Context) []doctor.Finding {
				return []doctor.Finding{{Level: doctor.Problem, Name: "bus.unusable", Says: MessageOf(err),
					Do: "correct bus in the configuration"}}
			}}}
		}
		o = &configured
	}
	x := NewBusExamination(e.plan, *o)
	x.Own, x.Now = e.Bus == nil, e.Now
	if x.Own && !e.serves() { // otherwise the process reports it, for its roles
		for _, spec := range e.plan.Specs() {
			x.Workers = append(x.Workers, spec.Name)
		}
	}
	return []doctor.Check{{Area: AreaBus, Ask: x.Ask}}
}

// NewBusExamination returns an examination of a bus with options, as the user of the configuration.
func NewBusExamination(p *plan.Plan, o bus.Options) *BusExamination {
	o.Name = "belfry doctor"
	return &BusExamination{Plan: p, User: cmp.Or(o.Auth.User, "of the configuration"), Own: true, Now: time.Now,
		Connect: func() (AskedBus, func(), error) {
			c, err := bus.Dial(o)
			if err != nil {
				return nil, nil, err
			}
			return c, c.Close, nil
		}}
}

// Ask makes all checks of the bus concurrently if it can be reached.
func (x *BusExamination) Ask(ctx context.Context) []doctor.Finding {
	b, done, err := x.Connect()
	if err != nil {
		return []doctor.Finding{busUnreachable(err)}
	}
	all := []doctor.Finding{{Level: doctor.OK, Name: "bus.connected",
		Says: "it replies, a server of version " + b.Conn().ConnectedServerVersion()}}
	done()
	checks := []doctor.Check{
		x.Check("whether events can be published", x.askPublish, strings.TrimSuffix(event.LogPrefix, ".")),
		x.Check("listeners, their lag and their dead letters", x.askListeners, apiPrefix),
		x.Check("the clock of the bus", x.askClock, apiPrefix),
		x.Check("what listeners have missed", x.askMissed, missed.SubjectList),
	}
	if len(x.Workers) > 0 {
		checks = append(checks, x.Check(WhatWorkers, x.AskWork))
	}
	steps, err := command.BusSteps(x.Plan, nil, nil, true)
	if err != nil {
		return append(all, doctor.Finding{Level: doctor.Problem, Name: "bus.unusable", Says: MessageOf(err),
			Do: "correct bus in the configuration"})
	}
	for i, step := range steps {
		checks = append(checks, x.Check(step.What, func(ctx context.Context, b AskedBus) ([]doctor.Finding, error) {
			steps, err := command.BusSteps(x.Plan, b, nil, true)
			if err != nil {
				return nil, err
			}
			found, err := steps[i].Do(ctx)
			return differences(found), err
		}, apiPrefix))
	}
	within := time.Minute
	if until, has := ctx.Deadline(); has {
		// So that hanging checks are named here, and the other findings are kept.
		within = max(time.Until(until)-time.Second, 0)
	}
	return append(all, joined(doctor.Run(ctx, checks, within).Findings)...)
}

const apiPrefix = "$JS.API"

// Check makes a check that sends requests on subjects. If the server denies one, the finding is that the check is not
// possible.
func (x *BusExamination) Check(what string, ask func(ctx context.Context, b AskedBus) ([]doctor.Finding, error),
	subjects ...string) doctor.Check {
	return doctor.Check{Area: AreaBus, Subject: what, Ask: func(ctx context.Context) []doctor.Finding {
		b, done, err := x.Connect()
		if err != nil {
			return []doctor.Finding{busUnreachable(err)}
		}
		defer done()
		ctx, stop := b.UntilDenied(ctx, append(subjects, b.Conn().Opts.InboxPrefix)...)
		defer stop()
		all, err := ask(ctx, b)
		subject, denied := deniedOf(ctx, err)
		switch {
		case err == nil:
			return all
		case denied && bus.IsInbox(subject):
			return append(all, doctor.Finding{Level: doctor.Problem, Name: "bus.inbox",
				Says: "the bus's user " + x.User + " may not receive replies on " + subject,
				Do: "name the user by bus.user and bus.password, not in the URL: then replies arrive on " +
					"_INBOX_<user>, as nats.conf permits"})
		case denied:
			return append(all, x.denied(what, subject))
		default:
			return append(all, doctor.Finding{Level: doctor.Problem, Name: "bus.failed", Says: MessageOf(err),
				Do: "see the log of the NATS server; docs/guides/deploy-cluster.md lists belfry's requirements"})
		}
	}}
}

func busUnreachable(err error) doctor.Finding {
	f := doctor.Finding{Level: doctor.Problem, Name: "bus.unreachable",
		Says: MessageOf(err), Do: "check that the NATS server runs, and bus.url and bus.tls; meanwhile events stay " +
			"in their records, and none is lost"}
	if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrAuthRevoked) {
		f.Name, f.Do = "bus.login", "correct bus.user and bus.password, bus.token, bus.nkey or bus.credentials; the "+
			"server's nats.conf has the users"
	}
	return f
}

// askPublish sends a message that the server must refuse because it names another stream, so nothing is stored.
func (x *BusExamination) askPublish(ctx context.Context, b AskedBus) ([]doctor.Finding, error) {
	m := refusedBy(nats.NewMsg(event.LogPrefix + "doctor"))
	_, err := b.Conn().RequestMsgWithContext(ctx, m)
	if _, denied := deniedOf(ctx, err); denied && x.Own {
		return []doctor.Finding{{Level: doctor.Problem,
			Name: "bus.mayNotPublish", Says: "the bus's user " + x.User + " may not publish events on " +
				event.LogPrefix + ">: they stay in their records, and no listener receives them",
			Do: asRolesSay}}, nil
	}
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, nil // there is no stream, as another check reports
	}
	if err != nil {
		return nil, err
	}
	return []doctor.Finding{{Level: doctor.OK, Name: "bus.publishes", Says: "the user may publish events"}}, nil
}

// differences reports the parts of the bus that are not as configured.
func differences(found []bus.Diff) (all []doctor.Finding) {
	for _, d := range found {
		f := doctor.Finding{Level: doctor.OK, Name: "bus.inSync", Subject: d.What, Says: "it is as configured"}
		switch {
		case d.State == bus.Missing:
			f.Level, f.Name, f.Says, f.Do = doctor.Problem, "bus.missing", "it does not exist",
				"run `belfry bus setup` as the admin of the bus"
		case d.State == bus.Recreate:
			f.Level, f.Name, f.Says, f.Do = doctor.Warning, "bus.recreate",
				d.Detail+", which the server does not change", strings.Join(d.Commands, "; ")
		case d.NeedsSetup():
			f.Level, f.Name, f.Says, f.Do = doctor.Warning, "bus.drifted", d.Detail,
				"run `belfry bus setup` as the admin of the bus, or correct the configuration"
		}
		if s := d.Shortcomings(); len(s) > 0 {
			f.Level, f.Says = doctor.Problem, f.Says+": "+strings.Join(s, "; ")
		}
		all = append(all, f)
	}
	return all
}

// Limits from which a listener is late, and clocks differ too much.
const (
	muchLag   = 10_000
	idleLag   = 10 * time.Minute // with events that it could handle
	ClockSkew = 2 * time.Second  // from which the times of processes differ too much: docs/clocks.md
)

// askListeners checks the consumers of the log, and the dead letters.
func (x *BusExamination) askListeners(ctx context.Context, b AskedBus) ([]doctor.Finding, error) {
	s, err := b.JetStream().Stream(ctx, bus.StreamEvents)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil // as another check reports
	}
	if err != nil {
		return nil, err
	}
	listeners, err := replay.List(ctx, b.JetStream())
	if err != nil {
		return nil, err
	}
	var all []doctor.Finding
	for _, l := range listeners {
		all = append(all, x.judgeListener(l, s.CachedInfo())...)
	}
	if len(all) == 0 {
		all = append(all, doctor.Finding{Level: doctor.OK, Area: areaListener, Name: "listener.ok",
			Says: count.Of(len(listeners), "listener") + ", without lag and dead letters"})
	}
	return all, nil
}

// judgeListener reports the problems of a listener.
func (x *BusExamination) judgeListener(l *replay.Listener, log *jetstream.StreamInfo) (all []doctor.Finding) {
	add := func(level doctor.Level, name, says, do string) {
		all = append(all,
			doctor.Finding{Level: level, Area: areaListener, Name: name, Subject: l.Name, Says: says, Do: do})
	}
	if l.Letters > 0 {
		add(doctor.Problem, "listener.deadLetters", count.Of(l.Letters, "event")+" could not be handled",
			"see the reasons with `belfry dlq list --listener "+l.Name+
				"`; then `belfry dlq retry` or `belfry dlq drop`: docs/guides/listeners.md")
	}
	if !l.PausedUntil.IsZero() {
		add(doctor.Problem, "listener.paused",
			"it is paused until "+l.PausedUntil.Format(time.RFC3339)+", and receives nothing",
			"`nats consumer resume "+bus.StreamEvents+" "+l.Name+"` ends that")
	}
	most := uint64(0)
	if log.Config.MaxMsgs > 0 {
		most = uint64(log.Config.MaxMsgs)
	}
	events := fmt.Sprintf("%d events are not handled yet", l.Lag+uint64(max(l.Unacked, 0))) //nolint:gosec // not negative
	switch {
	case most > 0 && l.Lag > most/2:
		add(doctor.Problem, "listener.losing",
			events+", and the log holds at most "+fmt.Sprint(most)+": it will soon miss the oldest",
			"start more processes with it, or raise bus.events.maxMessages and maxBytes")
	case l.Lag > 0 && !l.Last.IsZero() && x.Now().Sub(l.Last) > idleLag:
		add(doctor.Problem, "listener.stopped", events+", and it was last active at "+l.Last.UTC().Format(time.RFC3339),
			"start the process with this listener, or see its log; `belfry bus setup` resets nothing")
	case l.Lag > muchLag:
		add(doctor.Warning, "listener.lag", events,
			"check with `belfry listener list` whether the number decreases; if not, start more processes with it")
	}
	return all
}

// askMissed requests the listeners that have missed events from a belfry on the bus.
func (x *BusExamination) askMissed(ctx context.Context, b AskedBus) ([]doctor.Finding, error) {
	gaps, err := missed.Fetch(ctx, b.Conn())
	if errors.Is(err, nats.ErrNoResponders) {
		return []doctor.Finding{{Level: doctor.Unseen, Name: "bus.noWorker",
			Says: "no belfry with the role mapping, cascade or mail replies on the bus",
			Do:   "start one: without it arrays are not updated and mails are not sent"}}, nil
	}
	if err != nil {
		return nil, err
	}
	var all []doctor.Finding
	for _, g := range gaps {
		if g.Open() {
			all = append(all,
				doctor.Finding{Level: doctor.Problem, Area: areaListener, Name: "listener.missed", Subject: g.Consumer,
					Says: "it has missed " + g.Count() + " events since " + g.Since.UTC().Format(time.RFC3339) +
						": the log was " + string(g.Reason),
					Do: "repeat the listener's work for these events, then run `belfry listener confirm " + g.Consumer +
						"`: docs/guides/listeners.md"})
		}
	}
	if len(all) == 0 {
		all = append(all, doctor.Finding{Level: doctor.OK, Area: areaListener, Name: "listener.complete",
			Says: "no listener has missed events"})
	}
	return all, nil
}

// askClock compares the clock of this machine with the clock of the bus.
func (x *BusExamination) askClock(ctx context.Context, b AskedBus) ([]doctor.Finding, error) {
	before := x.Now()
	s, err := b.JetStream().Stream(ctx, bus.StreamEvents)
	after := x.Now()
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	at := s.CachedInfo().TimeStamp
	if at.IsZero() {
		return []doctor.Finding{{Level: doctor.Unseen, Area: areaClock, Name: "clock.unknown",
			Says: "the NATS server does not report its time", Do: "update it to 2.10 or later"}}, nil
	}
	return []doctor.Finding{JudgeClock("the bus", at, before, after)}, nil
}

// JudgeClock compares the time of another machine, read between two moments of this machine, with this clock.
func JudgeClock(whose string, at, before, after time.Time) doctor.Finding {
	ahead := time.Duration(0)
	switch {
	case at.After(after):
		ahead = at.Sub(after)
	case at.Before(before):
		ahead = -before.Sub(at)
	}
	f := doctor.Finding{Level: doctor.OK, Area: areaClock, Name: "clock.ok", Subject: whose,
		Says: "its clock agrees with this machine's clock"}
	if ahead.Abs() > ClockSkew {
		way := "ahead of"
		if ahead < 0 {
			way = "behind"
		}
		f.Level, f.Name = doctor.Problem, "clock.differs"
		f.Says = fmt.Sprintf("its clock is %s %s this machine's clock", ahead.Abs().Round(time.Second), way)
		f.Do = "set the clocks of all machines by NTP: docs/clocks.md"
	}
	return f
}
