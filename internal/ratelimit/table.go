package ratelimit

// MaxKeys is how many keys a Table holds.
const MaxKeys = 100_000

// Table holds the state of at most MaxKeys keys. When it is full it drops the
// keys that are idle, and arbitrary ones if those are too few. It is not safe
// for concurrent use.
type Table[V any] struct {
	idle   func(*V) bool
	states map[string]*V
}

// NewTable makes a table. idle reports a state that is as good as none.
func NewTable[V any](idle func(*V) bool) *Table[V] {
	return &Table[V]{idle: idle, states: map[string]*V{}}
}

// Get returns the state of a key, nil if it has no state.
func (t *Table[V]) Get(key string) *V { return t.states[key] }

// GetOrCreate returns the state of a key. It creates a zero one for a new key.
func (t *Table[V]) GetOrCreate(key string) (state *V, created bool) {
	if v := t.states[key]; v != nil {
		return v, false
	}
	t.evictOld()
	v := new(V)
	t.states[key] = v
	return v, true
}

// Len returns the number of keys.
func (t *Table[V]) Len() int { return len(t.states) }

// evictOld drops at least an eighth of a full table: it reads the whole table,
// which must not happen again for each further key.
func (t *Table[V]) evictOld() {
	if len(t.states) < MaxKeys {
		return
	}
	for key, v := range t.states {
		if t.idle(v) {
			delete(t.states, key)
		}
	}
	for key := range t.states {
		if len(t.states) <= MaxKeys-MaxKeys/8 {
			return
		}
		delete(t.states, key)
	}
}
