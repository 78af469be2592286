package console

import (
	"cmp"
	"strconv"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/httpkit"
)

// restoration is the data of the page on which a version of an object is restored: the form that sends it is that of an
// edit, at the revision that is shown.
type restoration struct {
	Store      StoreInfo
	UUID, Name string
	Revision   uint64
	Event      historyEvent
	Text       string // what can be edited, as JSON, of the version
	Diff       []change
	HistoryURL string
}

// restore shows what the object would be after an edit that gives it the fields of a version in its history.
func (v *objectsView) restore(r *request) error {
	if _, _, err := v.writable(r); err != nil {
		return err
	}
	info, st, shown, _, err := v.one(r)
	if err != nil {
		return err
	}
	e, err := v.version(r, info.Name, shown.UUID)
	if err != nil {
		return err
	}
	p := restoration{Store: info, UUID: shown.UUID, Name: nameOf(info, shown.Body), Revision: shown.Revision,
		HistoryURL: pathOf("objects", info.Name, "object", shown.UUID, "history")}
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	events := []historyEvent{v.historyEvent(st, e, nil)}
	if err := r.nameActors(ctx, events); err != nil {
		return err
	}
	p.Event = events[0]
	if p.Text, _, _, err = split(st, st.Rules().Visible(e.Object)); err != nil {
		return err
	}
	now, _, _, err := split(st, shown.Body)
	if err != nil {
		return err
	}
	p.Diff = diff(sorted(now), sorted(p.Text))
	return r.Page("objects_restore", "Restore a version of "+cmp.Or(p.Name, p.UUID), p)
}

// version returns the event of an object that the path names, with the object as it was after it.
func (v *objectsView) version(r *request, name, uuid string) (LogEvent, error) {
	if v.history == nil {
		return LogEvent{}, notFound("this process does not read the log of events")
	}
	text, err := r.PathParam("sequence")
	if err != nil {
		return LogEvent{}, err
	}
	sequence, err := strconv.ParseUint(text, 10, 63)
	if err != nil || sequence == 0 {
		return LogEvent{}, notFound("there is no event %s", httpkit.Truncate(text, 20))
	}
	ctx, cancel := r.busContext()
	defer cancel()
	events, err := v.history(ctx, name, uuid, sequence+1, 1)
	if err != nil {
		return LogEvent{}, err
	}
	if len(events) == 0 || events[0].Sequence != sequence {
		return LogEvent{}, notFound("the log no longer has the event %d of this object", sequence)
	}
	if !isVersion(events[0]) {
		return LogEvent{}, errs.New(errs.Invalid, "the event %d does not have the object as it was", sequence)
	}
	return events[0], nil
}

// isVersion reports whether an event has an object as it was after it.
func isVersion(e LogEvent) bool {
	return len(e.Object) > 0 && !e.ObjectOmitted && e.Arrays == nil &&
		(e.Event == event.StoreSaved || e.Event == event.StoreUpdated || e.Event == event.Register)
}

// historyGroup is a change by people, and what workers have done after it.
type historyGroup struct {
	By      *historyEvent // nil: older than the events of the page
	Workers []historyEvent
}

// isWorkers reports whether an update is a worker's: a consequence of other changes.
func isWorkers(e event.Envelope) bool {
	switch e.Origin {
	case event.OriginCompute, event.OriginCascade, event.OriginSweep:
		return e.Event == event.StoreUpdated
	}
	return e.Event == event.StoreUpdated && event.ByWorker(e.Origin)
}

// grouped puts each change by people before the updates that workers made after it, the newest change first.
func grouped(events []historyEvent) (all []historyGroup) {
	var workers []historyEvent
	for i, e := range events {
		if isWorkers(e.Envelope) {
			workers = append(workers, e)
			continue
		}
		all = append(all, historyGroup{&events[i], workers})
		workers = nil
	}
	if len(workers) > 0 {
		all = append(all, historyGroup{nil, workers})
	}
	return all
}
