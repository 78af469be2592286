package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"belfry/pkg/event"
	"belfry/test/chaos/history"
)

// story makes the history of a belfry that keeps every promise, one request after the other. The tests
// then break it.
type story struct {
	*history.Segment
	t        *testing.T
	clock    int64
	revision uint64
	objects  map[history.Object]map[string]any
}

func newStory(t *testing.T) *story {
	return &story{
		t: t, objects: map[history.Object]map[string]any{},
		revision: uint64(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()), Segment: &history.Segment{
			Start: map[history.Object]history.State{}, Final: map[history.Object]history.State{},
			Received: map[string]bool{},
			Deleted:  map[history.Object]uint64{}, Ordered: true, Files: map[string][]byte{},
			Ops: make([]history.Op, 0, 200), // pointers to requests stay valid
		},
	}
}

func obj(store string, n int) history.Object { return history.Named("t", store, n) }

// now advances the clock: every call and every return has a time of its own.
func (s *story) now() int64 { s.clock += 10; return s.clock }

func (s *story) body(o history.Object) []byte {
	s.t.Helper()
	if s.objects[o] == nil {
		return nil
	}
	data, err := json.Marshal(s.objects[o])
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

func timeOf(revision uint64) string {
	return time.UnixMicro(int64(revision)).UTC().Format("2006-01-02T15:04:05.000000Z")
}

// happen adds the event of a write and makes its object final.
func (s *story) happen(o history.Object, name event.Name, origin, request string, change map[string]any) uint64 {
	s.t.Helper()
	s.revision += 1000
	before := s.body(o)
	next := maps.Clone(s.objects[o])
	if next == nil {
		next = map[string]any{"uuid": o.UUID, "created": timeOf(s.revision)}
	}
	maps.Copy(next, change)
	if !event.ByWorker(origin) {
		next["updated"] = timeOf(s.revision)
		maps.Copy(next, s.derived(o, next, name == event.StoreSaved))
	}
	maps.DeleteFunc(next, func(_ string, value any) bool { return value == nil })
	s.objects[o] = next
	e := history.Event{Sequence: uint64(len(s.Events) + 1)}
	e.ID, e.Event, e.Store, e.UUID = fmt.Sprintf("event-%d", len(s.Events)), name, o.Store, o.UUID
	e.Revision, e.Origin, e.Ctx.Request, e.Envelope.Object = s.revision, origin, request, s.body(o)
	if name == event.StoreDeleted {
		e.Envelope.Object = before
		delete(s.objects, o)
		delete(s.Final, o)
	} else {
		s.Final[o] = history.State{Revision: s.revision, Body: s.body(o)}
	}
	s.Events = append(s.Events, e)
	s.Received[e.ID] = true
	return s.revision
}

// do adds a write that is acknowledged.
func (s *story) do(kind history.Kind, o history.Object, fields map[string]any) *history.Op {
	s.t.Helper()
	op := history.Op{Object: o, Kind: kind, Request: fmt.Sprintf("request-%d", len(s.Ops)), Call: s.now(),
		Outcome: history.Done, Status: 200}
	for name, value := range fields {
		data, err := json.Marshal(value)
		if err != nil {
			s.t.Fatal(err)
		}
		if op.Fields == nil {
			op.Fields = history.Fields{}
		}
		op.Fields[name] = string(data)
	}
	name := event.StoreUpdated
	switch kind {
	case history.Create:
		name = event.StoreSaved
	case history.Delete:
		name = event.StoreDeleted
	}
	revision := s.happen(o, name, event.OriginHTTP, op.Request, fields)
	if kind != history.Delete {
		op.Revision, op.Body = revision, s.body(o)
	}
	op.Return = s.now()
	s.Ops = append(s.Ops, op)
	return &s.Ops[len(s.Ops)-1]
}

// get adds a read.
func (s *story) get(o history.Object) *history.Op {
	s.t.Helper()
	op := history.Op{
		Object: o, Kind: history.Get, Request: fmt.Sprintf("request-%d", len(s.Ops)), Outcome: history.Done,
		Status: 200, Revision: s.Final[o].Revision, Body: s.Final[o].Body, Call: s.now(), Return: s.now(),
	}
	if op.Body == nil {
		op.Outcome, op.Status = history.Refused, 404
	}
	s.Ops = append(s.Ops, op)
	return &s.Ops[len(s.Ops)-1]
}

// refuse adds a write that is refused.
func (s *story) refuse(kind history.Kind, o history.Object, status int, title string) *history.Op {
	s.Ops = append(s.Ops, history.Op{
		Object: o, Kind: kind, Request: fmt.Sprintf("request-%d", len(s.Ops)), Outcome: history.Refused, Status: status,
		Fields: history.Fields{"title": fmt.Sprintf("%q", title)}, Call: s.now(), Return: s.now(),
	})
	return &s.Ops[len(s.Ops)-1]
}

// array lets the worker write an array.
func (s *story) array(target history.Object, m history.Store, sources ...history.Object) {
	s.t.Helper()
	entries := []json.RawMessage{}
	for _, source := range sources {
		entries = append(entries, json.RawMessage(history.Project(source.UUID, s.body(source), m.Fields)))
	}
	s.happen(target, event.StoreUpdated, event.OriginMapping, "", map[string]any{m.Array: entries})
}

// lose loses the log, with all events that the listener has not received: all of them.
func (s *story) lose() {
	s.Loss, s.Events, s.Received = &history.Loss{At: s.now()}, nil, map[string]bool{}
}

// loseReceived loses the log when the listener has received everything.
func (s *story) loseReceived() {
	s.Loss, s.Events = &history.Loss{At: s.now(), Received: s.Events}, nil
}

// find returns the last event of an object.
func (s *story) find(o history.Object) int {
	for i, e := range slices.Backward(s.Events) {
		if e.Object() == o {
			return i
		}
	}
	s.t.Fatalf("%s has no event", o)
	return 0
}

// drop removes an event as if it had never been published.
func (s *story) drop(i int) {
	delete(s.Received, s.Events[i].ID)
	s.Events = slices.Delete(s.Events, i, i+1)
}

var (
	register = obj(history.Registers, 0)
	parent   = obj(history.Parents, 0)
	child    = obj(history.Children, 0)
	small    = obj(history.Smalls, 0)
)

// good is a history with objects of several stores, copies, a cascade and a refused write.
func good(t *testing.T) *story {
	t.Helper()
	s := newStory(t)
	s.do(history.Create, register, map[string]any{"title": "a"})
	s.do(history.Put, register, map[string]any{"title": "b", "value": 3})
	s.get(register)
	s.refuse(history.Create, register, 409, "refused").Problem = "exists: it exists"
	s.do(history.Create, parent, map[string]any{"title": "p"})
	s.do(history.Create, child, map[string]any{"title": "c", "value": 1, "parent": parent.UUID})
	s.array(parent, history.StoreOf(history.Children), child)
	for n := range 4 {
		s.do(history.Create, obj(history.Smalls, n),
			map[string]any{"title": fmt.Sprint("s", n), "value": n, "parent": parent.UUID})
	}
	s.array(parent, history.StoreOf(history.Smalls), small, obj(history.Smalls, 2), obj(history.Smalls, 3))
	s.settle()
	s.get(parent)
	other, orphan := obj(history.Parents, 1), obj(history.Children, 1)
	s.do(history.Create, other, map[string]any{"title": "q"})
	s.do(history.Create, orphan, map[string]any{"title": "o", "parent": other.UUID})
	s.do(history.Delete, other, nil)
	s.happen(orphan, event.StoreDeleted, event.OriginCascade, "", nil)
	s.get(orphan)
	return s
}

// expect checks that the kinds of violations are these.
func expect(t *testing.T, s *story, want ...Kind) {
	t.Helper()
	r := Segment(s.Segment)
	var got []Kind
	for _, v := range r.Violations {
		if !slices.Contains(got, v.Kind) {
			got = append(got, v.Kind)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
		for _, v := range r.Violations {
			t.Log(v)
		}
	}
}
