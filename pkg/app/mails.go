package app

import (
	"context"

	maillistener "belfry/listeners/mail"
	"belfry/pkg/app/part"
	"belfry/pkg/listener"
)

// mails sends mails, where the configuration has any.
type mails struct {
	listeners
	served *current
}

// part is the part of a process.
func (m *mails) part() servedPart {
	return servedPart{
		Name: "the listener of mails",
		Start: func(_ context.Context, first *generation) error {
			m.run(first, m.specs(first))
			return nil
		},
		Reload: func(ctx context.Context, before, next *generation) (part.Change, error) {
			return m.change(ctx, before, next, m.specs(before), m.specs(next))
		},
		Stop: m.end,
	}
}

func (m *mails) specs(g *generation) []listener.Spec {
	spec := g.plan.MailSpec()
	if g.auth.EmailEnabled() {
		spec = maillistener.Spec(g.auth)
	}
	spec.Handler = func(ctx context.Context, e *listener.Event) error {
		now, done := m.served.use()
		defer done()
		if !now.auth.EmailEnabled() { // a reload has ended that
			return nil
		}
		return maillistener.Spec(now.auth).Handler(ctx, e)
	}
	return []listener.Spec{spec}
}
