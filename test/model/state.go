package model

import (
	"fmt"
	"maps"
	"slices"

	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// state is all that decides how things can go on. A state is not changed once
// it has been reached; what it refers to is shared with others.
type state struct {
	tables  []map[string]*row // of each store
	mail    []*letter
	writers []writer
	hands   []hand
	clock   uint64
	lives   Lives
	history []map[string]map[string]*row // of each write the stores before it, where indexes lag
}

// letter is an event that a consumer has not acknowledged.
type letter struct {
	consumer int
	event    *event.Envelope
	id       uint64
	name     string // the consumer's
}

func (l *letter) String() string {
	e := l.event
	return fmt.Sprintf("%s of %s %s/%s@%d", l.name, e.Event, e.Store, e.UUID, e.Revision-min(e.Revision, Epoch))
}

func newLetter(consumer int, name string, e *event.Envelope) *letter {
	l := &letter{consumer: consumer, event: e, name: name}
	same := *e
	same.ID, same.Time = "", "" // two events that differ in these alone say the same
	l.id = mixText(uint64(consumer), string(same.Append(nil)))
	return l
}

// process is a client's act or a worker's handling at some step of it. What it
// knows is what it has been answered.
type process struct {
	log    []answer
	digest uint64
	next   step
}

type writer struct {
	at    int // which of its acts
	begun bool
	since uint64 // the clock when its act began
	process
}

type hand struct {
	letter *letter
	process
}

// Life is what clients did to an object, in times of the clock.
type Life struct {
	Live        bool
	Created     uint64 // when the object was last created
	Begun       uint64 // when its last write by a client began
	Written     uint64 // when that write was made
	CreateBegun uint64 // when its last creation began
	Deleted     uint64 // when it was last deleted; 0 for never
	DeletedAt   uint64 // the revision of that deletion
	WrittenAt   uint64 // the revision of the last write by a client
	Linked      uint64 // since when its keys are what they are
	keys        string
}

// Lives are the lives of objects, by store/uuid.
type Lives map[string]Life

// remember notes a write that has just been made.
func (s *state) remember(mappings []store.Mapping, e *event.Envelope, begun uint64) {
	key := e.Store + "/" + e.UUID
	life := s.lives[key]
	made := s.clock
	switch {
	case e.Event == event.StoreDeleted:
		life.Live, life.Deleted, life.DeletedAt = false, made, e.Revision
	case e.Origin != event.OriginGo:
		return
	case e.Event == event.StoreSaved:
		life.Live, life.Created, life.CreateBegun = true, made, begun
		fallthrough
	default:
		life.Begun, life.Written, life.WrittenAt = begun, made, e.Revision
		if keys := keysOf(mappings, e); e.Event == event.StoreSaved || keys != life.keys {
			life.Linked, life.keys = made, keys
		}
	}
	s.lives = maps.Clone(s.lives)
	s.lives[key] = life
}

func keysOf(mappings []store.Mapping, e *event.Envelope) string {
	var keys []byte
	for i := range mappings {
		if m := &mappings[i]; m.Source == e.Store {
			keys = append(append(keys, object.Field(e.Object, m.Key)...), ';')
		}
	}
	return string(keys)
}

// digest identifies a state: from states of equal digest the same can follow.
func (s *state) digest(clock bool) uint64 {
	var sum uint64
	for i, table := range s.tables {
		for _, r := range table {
			sum += mix(r.digest, uint64(i))
		}
	}
	for _, l := range s.mail {
		sum += mix(l.id, 3+s.holders(l))
	}
	for i := range s.writers {
		w := &s.writers[i]
		d := mix(mix(uint64(i), uint64(w.at)), w.digest)
		if clock {
			d = mix(d, w.since)
		}
		sum += d
	}
	for i := range s.hands {
		h := &s.hands[i]
		open := uint64(0)
		if slices.Contains(s.mail, h.letter) {
			open = 1
		}
		sum += mix(mix(mix(h.letter.id, s.holders(h.letter)), open), h.digest)
	}
	if !clock {
		return mix(sum, 0)
	}
	for key, life := range s.lives {
		sum += mixText(mix(mix(life.Begun, life.Written), mix(life.Created, life.Deleted)), fmt.Sprint(key, life))
	}
	return mix(sum, s.clock)
}

// returned makes an event come again whose handler vanished. Another handler
// that has it in hand already may be past the place where it would have seen
// what the vanished one did: its acknowledgement is not for this delivery.
func (s *state) returned(l *letter) {
	waits := slices.ContainsFunc(s.mail, func(o *letter) bool { return o.id == l.id && s.holders(o) == 0 })
	if !waits {
		again := *l
		s.mail = append(slices.Clone(s.mail), &again)
	}
}

// holders is how many handlers have this delivery's letter in hand.
func (s *state) holders(l *letter) (n uint64) {
	for i := range s.hands {
		if s.hands[i].letter == l {
			n++
		}
	}
	return n
}

// quiet reports whether nothing is left to do for workers.
func (s *state) quiet() bool { return len(s.mail) == 0 && len(s.hands) == 0 }
