// Package mailers sends mails as configured, and tracks whether the mailers work.
package mailers

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/internal/prom"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
	"belfry/pkg/mail"
)

// mailWarnings is the shortest time between two warnings about one mailer.
const mailWarnings = time.Minute

// Mailers tracks the results of the mails that a process sends, and so whether its mailers work.
type Mailers struct {
	served  *serving.Current
	log     *slog.Logger
	metrics *serving.Metrics
	counts  *prometheus.CounterVec

	mu     sync.Mutex
	states map[string]*mailerState
}

// mailerState is the state of one mailer.
type mailerState struct {
	config config.Mailer
	since  time.Time // the first failure since it last worked; zero: it works, or nothing was sent yet
	says   string    // the reason, without the server's reply, which can have addresses
	warned time.Time
	sent   bool // a mail, since the process started or the settings changed
}

// The results of sending a mail.
const (
	mailSent     = "sent"
	mailRefused  = "refused"  // permanently: by its recipient's server, or for its content
	mailDeferred = "deferred" // for its recipient; it is retried
	mailFailed   = "failed"   // as every mail would fail now; it is retried
)

// New returns mailers without results.
func New(served *serving.Current, log *slog.Logger, metrics *serving.Metrics) *Mailers {
	m := &Mailers{served: served, log: log, metrics: metrics, states: map[string]*mailerState{},
		counts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "belfry_mails_total",
			Help: "Attempts to send a mail, by mailer and result: sent, refused (for good), deferred (its " +
				"recipient's server asks for another attempt), failed (the mailer does not work).",
		}, []string{"mailer", "result"})}
	metrics.Registry.MustRegister(m.counts)
	return m
}

// Part reports mailers that do not work to operators.
func (m *Mailers) Part() serving.Part {
	return serving.Part{Name: "the mailers", Check: m.failingMailer,
		Start: func(context.Context, *serving.Generation) error {
			m.metrics.Asked.MustRegister(m.collector())
			return nil
		}}
}

// use starts to use a mailer, or continues. It drops the state of a mailer with other settings, because their change
// may have repaired it.
func (m *Mailers) use(name string, c config.Mailer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.states[name]; s != nil && reflect.DeepEqual(s.config, c) {
		return
	}
	m.states[name] = &mailerState{config: c}
	for _, result := range []string{mailSent, mailRefused, mailDeferred, mailFailed} {
		m.counts.WithLabelValues(name, result)
	}
}

// note records the result of a mail. The first failure of a mailer is logged at once, and later ones once a minute.
func (m *Mailers) note(name string, err error) {
	if errors.Is(err, errs.Canceled) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := m.states[name], time.Now()
	says, about := mail.AboutServer(err)
	switch {
	case err == nil:
		m.counts.WithLabelValues(name, mailSent).Inc()
		if !s.since.IsZero() {
			m.log.Info("the mailer works again", "mailer", name, "after", now.Sub(s.since).Round(time.Second))
		}
		s.since, s.says, s.warned, s.sent = time.Time{}, "", time.Time{}, true
	case about:
		m.counts.WithLabelValues(name, mailFailed).Inc()
		if s.since.IsZero() {
			s.since = now
		}
		s.says = says
		if s.warned.IsZero() || now.Sub(s.warned) >= mailWarnings {
			s.warned = now
			m.log.Warn("the mailer can't send mails; they are retried for about a day; `belfry mail test ADDRESS` "+
				"tests the mailer", "mailer", name, "error", err, "since", s.since.UTC().Format(time.RFC3339))
		}
	case errors.Is(err, errs.Invalid):
		m.counts.WithLabelValues(name, mailRefused).Inc()
	default:
		m.counts.WithLabelValues(name, mailDeferred).Inc()
	}
}

// Sent reports whether a mailer has sent a mail since this process uses it with its present settings.
func (m *Mailers) Sent(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.states[name]
	return s != nil && s.sent
}

// Failing returns the time since when a mailer does not work, and the reason; "" if it works, or nothing was sent yet.
func (m *Mailers) Failing(name string) (says string, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.states[name]
	if s == nil || s.since.IsZero() {
		return "", time.Time{}
	}
	return s.says, s.since
}

// Failure describes a mailer that does not work.
type Failure struct {
	Says  string    `json:"says"` // without the server's reply
	Since time.Time `json:"since"`
}

func (f Failure) String() string {
	return "since " + f.Since.UTC().Format(time.DateTime) + " UTC: " + f.Says
}

// AllFailing returns the mailers that do not work among some.
func (m *Mailers) AllFailing(configured map[string]config.Mailer) map[string]Failure {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]Failure{}
	for name, s := range m.states {
		if _, is := configured[name]; is && !s.since.IsZero() {
			all[name] = Failure{s.says, s.since.UTC()}
		}
	}
	return all
}

// failingMailer reports that the mailer in use does not work.
func (m *Mailers) failingMailer() []string {
	e := m.served.Now().Config.Authentication.Email
	if e == nil {
		return nil
	}
	says, since := m.Failing(e.Mailer)
	if says == "" {
		return nil
	}
	return []string{"the mailer " + e.Mailer + " can't send mails since " + since.UTC().Format(time.DateTime) +
		" UTC: " + says + "; they are retried, and the log has the server's reply"}
}

var mailerDesc = prometheus.NewDesc("belfry_mailer_up",
	"0 while a mailer can't send mails, as far as this process has sent any; else 1.", []string{"mailer"}, nil)

// collector are the metrics of mailers.
func (m *Mailers) collector() prometheus.Collector {
	return prom.Computed(func(_ context.Context, values prom.Values) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for name, s := range m.states {
			if _, configured := m.served.Now().Config.Mailers[name]; configured {
				values.Gauge(mailerDesc, prom.OneIf(s.since.IsZero()), name)
			}
		}
	}, mailerDesc)
}

// watched is a sender whose results are noted.
type watched struct {
	mail.Sender
	mailers *Mailers
	name    string
}

// Send implements mail.Sender.
func (w watched) Send(ctx context.Context, m mail.Message) error {
	err := w.Sender.Send(ctx, m)
	w.mailers.note(w.name, err)
	return err
}

// Sender returns a mailer of a configuration.
func (m *Mailers) Sender(g *serving.Generation, name string) mail.Sender {
	of := g.Config.Mailers[name]
	m.use(name, of)
	return watched{m.unwatched(g, of), m, name}
}

func (m *Mailers) unwatched(g *serving.Generation, of config.Mailer) mail.Sender {
	if of.SMTP != nil {
		return mail.NewSMTP(g.Plan.SMTPOptions(of.SMTP))
	}
	// This mailer is for development: nobody gets its mails. But it is also the default, so links, which are secrets,
	// are logged only if they point to the local machine.
	local := g.Config.Local(g.Address)
	return mail.NewFolder(of.File.Folder, func(file, link string) {
		attrs := []any{"file", file}
		if local && link != "" {
			attrs = append(attrs, "link", link)
		}
		m.log.Info("a mail was written", attrs...)
	})
}
