package console

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

const (
	// deletionWait is how long an undo waits for the log to have the deletion, which is published after the write.
	deletionWait = 2 * time.Second
	deletionPoll = 50 * time.Millisecond
)

// undoDeletion returns the form that undoes the deletion of an object; nil for none. The event of the deletion has the
// object without the fields that never leave the server: an object with such fields can't be made again from it. A user
// is more than an object.
func (v *objectsView) undoDeletion(info StoreInfo, st *store.Store, full store.Stored) *undo {
	if v.history == nil || info.Users || !bytes.Equal(st.Rules().Visible(full.Body), full.Body) {
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
	uuid, err := r.UUID()
	if err != nil {
		return err
	}
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	if v.history == nil || info.Users {
		return errs.New(errs.Denied, "a deletion in %s can't be undone here", info.Name)
	}
	deleted, err := v.deletion(r, info.Name, uuid)
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
		" has been created again. Its files, and objects that were deleted with it, have not.")
}

// deletion returns the event of an object's deletion, which has to be the newest in the log.
func (v *objectsView) deletion(r *request, name, uuid string) (LogEvent, error) {
	ctx, cancel := context.WithTimeout(r.Context(), deletionWait)
	defer cancel()
	poll := time.NewTicker(deletionPoll)
	defer poll.Stop()
	for {
		events, err := v.history(ctx, name, uuid, 0, 1)
		switch {
		case err != nil && ctx.Err() == nil:
			return LogEvent{}, err
		case err == nil && len(events) == 1 && events[0].Event == event.StoreDeleted && len(events[0].Object) > 0:
			return events[0], nil
		}
		select {
		case <-ctx.Done():
			return LogEvent{}, errs.New(errs.Conflict, "the log does not have the deletion of this object as its last "+
				"change, or not all of the object: see its history")
		case <-poll.C:
		}
	}
}
