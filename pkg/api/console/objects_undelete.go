package console

import (
	"cmp"
	"context"
	"slices"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/access"
)

// logWaits are the pauses in which an undo waits for the log to have the change, which is published after the write.
// Each read of the log costs, so they grow.
var logWaits = []time.Duration{50 * time.Millisecond, 150 * time.Millisecond, 500 * time.Millisecond, time.Second}

// keptFields are the hidden fields that belfry adds again to an object that is created again, and those of files.
var keptFields = []string{store.AggregatesField, store.RequestsField, mapping.OwnersField, mapping.OverflowField,
	access.BinariesField}

// undoDeletion returns the form that undoes the deletion of an object; nil for none. The event of the deletion has the
// object without its private fields: an object with such fields can't be made again from it. A user is more than an
// object.
func (v *objectsView) undoDeletion(info StoreInfo, st *store.Store, full store.Stored) *undo {
	private := false
	_ = object.Each(full.Body, func(name string, _ []byte) bool {
		private = st.Rules().Hidden(name) && !slices.Contains(keptFields, name)
		return !private
	})
	if v.history == nil || info.Users || private {
		return nil
	}
	return &undo{Path: pathOf("objects", info.Name, "object", full.UUID, "undelete")}
}

// undelete creates an object again as it was when it was deleted.
func (v *objectsView) undelete(r *request) error {
	info, st, err := v.writable(r)
	if err != nil {
		return err
	}
	ctx, uuid, err := r.CallAbout()
	if err != nil {
		return err
	}
	if v.history == nil || info.Users {
		return errs.New(errs.Denied, "a deletion in %s can't be undone here", info.Name)
	}
	tombstone, gone, err := st.Deleted(ctx, uuid)
	switch {
	case err != nil:
		return err
	case !gone:
		return errs.New(errs.Conflict, "there is no deletion to undo: the object exists, or was deleted too long ago")
	}
	deleted, err := v.deletion(r.Context(), info.Name, uuid, tombstone.Revision)
	if err != nil {
		return err
	}
	text, _, _, err := split(st, st.Rules().Visible(deleted.Object))
	if err != nil {
		return err
	}
	o, err := object.Parse([]byte(text))
	if err != nil {
		return err
	}
	o["uuid"] = object.AppendString(nil, uuid)
	if _, err := st.Save(ctx, o, ""); err != nil {
		return err
	}
	return r.Redirect(pathOf("objects", info.Name, "object", uuid), cmp.Or(nameOf(info, deleted.Object), uuid)+
		" has been created again, without its files, and without the objects that were deleted with it.")
}

// deletion returns the event of an object's deletion with a revision, which has to be the newest in the log.
func (v *objectsView) deletion(ctx context.Context, name, uuid string, revision uint64) (LogEvent, error) {
	return v.awaitEvent(ctx, name, uuid, 1, func(events []LogEvent) (LogEvent, error) {
		if len(events) == 1 && events[0].Event == event.StoreDeleted && events[0].Revision == revision &&
			len(events[0].Object) > 0 {
			return events[0], nil
		}
		return LogEvent{}, errs.New(errs.Conflict, "the log does not have the deletion of this object as its last "+
			"change, or not all of the object: see its history")
	})
}

// awaitEvent reads the newest events of an object until one can be chosen, or returns the error of the last choice.
func (v *objectsView) awaitEvent(ctx context.Context, name, uuid string, n int,
	choose func(events []LogEvent) (LogEvent, error)) (LogEvent, error) {
	for i := 0; ; i++ {
		events, err := v.history(ctx, name, uuid, 0, n)
		if err != nil {
			return LogEvent{}, err
		}
		chosen, err := choose(events)
		if err == nil || i == len(logWaits) {
			return chosen, err
		}
		if err := backoff.Sleep(ctx, logWaits[i]); err != nil {
			return LogEvent{}, errs.Wrap(err, errs.Canceled, "the request ended")
		}
	}
}
