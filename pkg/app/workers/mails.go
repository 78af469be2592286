package workers

import (
	"context"

	maillistener "belfry/listeners/mail"
	"belfry/pkg/app/part"
	"belfry/pkg/app/serving"
	"belfry/pkg/listener"
)

// Mails sends mails, if they are configured.
type Mails struct {
	Runner
	Served *serving.Current
}

// Part returns the functions that start, reload and stop it.
func (m *Mails) Part() serving.Part {
	return serving.Part{
		Name: "the listener of mails",
		Start: func(_ context.Context, first *serving.Generation) error {
			m.run(first, m.specs(first))
			return nil
		},
		Reload: func(ctx context.Context, before, next *serving.Generation) (part.Change, error) {
			return m.change(ctx, before, next, m.specs(before), m.specs(next))
		},
		Stop: m.end,
	}
}

func (m *Mails) specs(g *serving.Generation) []listener.Spec {
	spec := g.Plan.MailSpec()
	if g.Auth.EmailEnabled() {
		spec = maillistener.Spec(g.Auth)
	}
	spec.Handler = func(ctx context.Context, e *listener.Event) error {
		now, done := m.Served.Use()
		defer done()
		if !now.Auth.EmailEnabled() { // a reload has disabled it
			return nil
		}
		return maillistener.Spec(now.Auth).Handler(ctx, e)
	}
	return []listener.Spec{spec}
}
