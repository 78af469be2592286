package api

import (
	"context"
	"errors"
	"log/slog"

	"belfry/pkg/event"
	"belfry/pkg/store"
)

// call says on whose behalf a request uses a store.
func (s *Server) call(x *exchange) (store.Call, error) {
	call := store.Call{Client: true, Origin: event.OriginHTTP, Ctx: x.eventCtx()}
	session, err := s.session(x)
	if session != nil {
		call.User = session.Visible
	}
	return call, err
}

// write makes a write and, when the client prefers it, waits for what the
// write causes. The context it returns is that of the client's call; applied
// reports that everything has been done, so that reading again shows it.
func (s *Server) write(x *exchange, act func(context.Context) error) (ctx context.Context, applied bool, err error) {
	call, err := s.call(x)
	if err != nil {
		return nil, false, err
	}
	limit := preferredWait(x.req.Header["Prefer"], s.MaxWait)
	if limit == 0 || s.Waiter == nil {
		ctx = store.WithCall(x.req.Context(), call)
		return ctx, false, act(ctx)
	}
	subject, wait, end := s.Waiter.Begin()
	defer end()
	call.Ctx.Wait = subject
	ctx = store.WithCall(x.req.Context(), call)
	collecting, causes := store.WithCauses(ctx)
	if err := act(collecting); err != nil {
		return ctx, false, err
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(s.stopping, cancel)()
	if err := wait(limited, causes.All()); err != nil {
		s.waitFailed(x, err)
		return ctx, false, nil
	}
	x.set("Preference-Applied", "wait")
	return ctx, true, nil
}

// waitFailed logs why nothing is known of a write's consequences, unless the
// time was simply over. The write itself succeeded.
func (s *Server) waitFailed(x *exchange, err error) {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return
	}
	s.Logger.LogAttrs(x.req.Context(), slog.LevelWarn, "could not wait for the consequences of a write",
		slog.String("request", x.id), slog.String("error", err.Error()))
}
