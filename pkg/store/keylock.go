package store

import (
	"context"
	"hash/maphash"
	"sync"
)

// Locker serializes the writers of an object in this process. It is an
// optimization, not a guarantee: writers in other processes are not blocked, and
// the driver's precondition on the revision keeps all of them apart. In this
// process it keeps events in the order of their writes on the way to the outbox,
// and keeps writers from failing each other's preconditions.
type Locker interface {
	// Lock blocks until the key is free or ctx ends.
	Lock(ctx context.Context, key string) (unlock func(), err error)
}

// KeyLock is a Locker with one lock for each key in use.
type KeyLock struct {
	seed   maphash.Seed
	shards [64]keyShard
}

type keyShard struct {
	mu    sync.Mutex
	locks map[string]*keyLock
	spare *keyLock // that nobody uses, with its token; nil: none
}

type keyLock struct {
	token chan struct{} // holds one token while free
	users int           // holding or waiting
}

// NewKeyLock makes a KeyLock.
func NewKeyLock() *KeyLock {
	l := &KeyLock{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].locks = make(map[string]*keyLock)
	}
	return l
}

var _ Locker = (*KeyLock)(nil)

// Lock implements Locker.
func (l *KeyLock) Lock(ctx context.Context, key string) (func(), error) {
	shard := &l.shards[maphash.String(l.seed, key)%uint64(len(l.shards))]
	shard.mu.Lock()
	h := shard.locks[key]
	if h == nil {
		if h, shard.spare = shard.spare, nil; h == nil {
			h = &keyLock{token: make(chan struct{}, 1)}
			h.token <- struct{}{}
		}
		shard.locks[key] = h
	}
	h.users++
	shard.mu.Unlock()
	unlock := func() {
		h.token <- struct{}{}
		shard.release(key, h)
	}
	select {
	case <-h.token: // without ctx.Done, which takes memory
		return unlock, nil
	default:
	}
	select {
	case <-h.token:
		return unlock, nil
	case <-ctx.Done():
		shard.release(key, h)
		return nil, ctx.Err()
	}
}

func (s *keyShard) release(key string, h *keyLock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(s.locks, key)
		s.spare = h
	}
}
