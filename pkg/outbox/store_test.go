package outbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/outbox"
	"belfry/pkg/store/driver"
)

// records is a store in memory, of which the relay needs the waiting events
// alone. They come in the order of uuids, then of revisions.
type records struct {
	driver.Store // what the relay must not use
	name         string

	mu          sync.Mutex
	waiting     map[string][]driver.Pending // by uuid
	next        uint64
	unavailable bool
}

func newRecords(name string) *records {
	return &records{name: name, waiting: map[string][]driver.Pending{}}
}

// write makes an event of the next revision, waiting in its record.
func (s *records) write(uuid string, size int) driver.Pending { return s.writeAs("", uuid, size) }

// writeAs is write of an event with an id of its own, unless that is empty.
func (s *records) writeAs(id, uuid string, size int) driver.Pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	if id == "" {
		id = fmt.Sprintf("%s-%s-%d", s.name, uuid, s.next)
	}
	payload, err := json.Marshal(event.Envelope{ID: id, UUID: uuid, Revision: s.next,
		Ctx: event.Ctx{UserAgent: string(make([]byte, size))}})
	if err != nil {
		panic(err)
	}
	p := driver.Pending{
		Event:    driver.Event{ID: id, Subject: event.Subject(event.StoreSaved, s.name, uuid), Payload: payload},
		UUID:     uuid,
		Revision: s.next,
	}
	s.waiting[uuid] = append(s.waiting[uuid], p)
	return p
}

func (s *records) setUnavailable(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unavailable = away
}

func (s *records) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, list := range s.waiting {
		n += len(list)
	}
	return n
}

func (s *records) Pending(_ context.Context, after []byte, limit int) ([]driver.Pending, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unavailable {
		return nil, nil, errs.New(errs.Unavailable, "the store is unavailable")
	}
	uuid, revision := position(after)
	var page []driver.Pending
	for _, u := range sorted(s.waiting) {
		for _, p := range s.waiting[u] {
			if u < uuid || u == uuid && p.Revision <= revision {
				continue
			}
			if len(page) == limit {
				last := page[limit-1]
				return page, fmt.Appendf(nil, "%s/%d", last.UUID, last.Revision), nil
			}
			page = append(page, p)
		}
	}
	return page, nil, nil
}

func (s *records) Clear(_ context.Context, events []driver.Pending) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unavailable {
		return errs.New(errs.Unavailable, "the store is unavailable")
	}
	for _, e := range events {
		list := s.waiting[e.UUID]
		for i := range list {
			if list[i].Revision == e.Revision {
				s.waiting[e.UUID] = append(append([]driver.Pending{}, list[:i]...), list[i+1:]...)
				break
			}
		}
		if len(s.waiting[e.UUID]) == 0 {
			delete(s.waiting, e.UUID)
		}
	}
	return nil
}

// writer commits events of a uuid in order, as package store does: the write
// and the handing over happen under one lock per uuid.
type writer struct {
	t     testing.TB
	relay *outbox.Relay
	store *records
	locks [8]sync.Mutex
}

func (w *writer) commit(object, size int) {
	lock := &w.locks[object%len(w.locks)]
	lock.Lock()
	defer lock.Unlock()
	w.relay.Committed(w.store.name, w.store.write("u"+strconv.Itoa(object), size))
}
