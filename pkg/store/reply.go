package store

import (
	"context"

	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
)

// reply returns what the caller of a write receives of the record that it wrote.
// A client receives what a get would return: the right to write is no right to
// read. Where a get would be refused, or can't be decided, it receives the uuid
// and the revision alone. The write has been made, so nothing here fails it.
func (s *Store) reply(ctx context.Context, r driver.Record) Stored {
	call := CallOf(ctx)
	if !call.Client {
		return s.project(call, r)
	}
	if !call.NoGet && s.rules.Allow(ctx, call.caller(), policy.Get, r.Body, nil) == nil {
		if seen, err := s.get(ctx, call, r); err == nil {
			return seen
		}
	}
	return Stored{
		UUID: r.UUID, Revision: r.Revision, Body: object.Object{"uuid": object.AppendString(nil, r.UUID)}.Encode(), ByCaller: s.rules.VariesByCaller(),
	}
}

// ReplyWith returns what a client receives of an object to which its request led otherwise
// than by a write of that object, such as the user of a login: what a get would return.
func (s *Store) ReplyWith(ctx context.Context, o Stored) Stored {
	return s.reply(ctx, driver.Record{UUID: o.UUID, Revision: o.Revision, Body: o.Body})
}

// replyWithoutBody returns what the caller of a mutation receives: for a client the
// uuid and the revision.
func (s *Store) replyWithoutBody(ctx context.Context, r driver.Record) Stored {
	if CallOf(ctx).Client {
		return Stored{UUID: r.UUID, Revision: r.Revision}
	}
	return s.project(CallOf(ctx), r)
}
