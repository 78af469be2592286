package console

import (
	"context"
	"slices"
	"strconv"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// undoEdit returns the form that undoes an edit; nil for none. An edit that changed nothing has not written.
func (v *objectsView) undoEdit(info StoreInfo, before, saved store.Stored) *undo {
	if v.history == nil || saved.Revision == before.Revision {
		return nil
	}
	return &undo{Path: pathOf("objects", info.Name, "object", saved.UUID, "undo"),
		Fields: map[string]string{"revision": strconv.FormatUint(saved.Revision, 10)}}
}

// undo gives an object the fields again that it had before its latest edit, as another edit.
func (v *objectsView) undo(r *request) error {
	if _, _, err := v.writable(r); err != nil {
		return err
	}
	info, st, shown, full, err := v.one(r)
	if err != nil {
		return err
	}
	if v.history == nil {
		return notFound("this process does not read the log of events")
	}
	revision, err := r.revision()
	if err != nil {
		return err
	}
	if shown.Revision != revision && !store.OnlyWorkersSince(full, revision) {
		return errs.New(errs.Conflict, "the object has been changed since: see its history")
	}
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	former, err := v.before(r.Context(), info.Name, shown.UUID, revision)
	if err != nil {
		return err
	}
	text, _, _, err := split(st, st.Rules().Visible(former.Object))
	if err != nil {
		return err
	}
	o, err := object.Parse([]byte(text))
	if err != nil {
		return err
	}
	saved, err := save(ctx, st, shown, o)
	if err != nil {
		return err
	}
	return r.RedirectUndo(pathOf("objects", info.Name, "object", shown.UUID), "The edit has been undone.",
		v.undoEdit(info, shown, saved))
}

// before returns the event that has an object as it was before the change with a revision.
func (v *objectsView) before(ctx context.Context, name, uuid string, revision uint64) (LogEvent, error) {
	return v.awaitEvent(ctx, name, uuid, historyPage, func(events []LogEvent) (LogEvent, error) {
		i := slices.IndexFunc(events, func(e LogEvent) bool {
			return e.Event == event.StoreUpdated && e.Revision == revision
		})
		older := events[i+1:]
		if j := slices.IndexFunc(older, changesFields); i >= 0 && j >= 0 && isVersion(older[j]) {
			return older[j], nil
		}
		return LogEvent{}, errs.New(errs.Conflict, "the log does not have the object as it was before: see its history")
	})
}

// changesFields reports whether an event has an object, or may have changed fields that can be edited. Events of files,
// and of entries of large arrays, do not.
func changesFields(e LogEvent) bool {
	return isVersion(e) || e.Event != event.BinaryUploaded && e.Event != event.BinaryDeleted && !isWorkers(e.Envelope)
}
