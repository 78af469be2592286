package mongostore

import (
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const (
	maxRecent      = 256     // arrays
	maxRecentBytes = 1 << 20 // of their documents
)

// recent remembers what GetEntries has read of arrays, since a change of the same entries usually follows: that needs
// no read then. A document is as it was at its revision, and the write requires that revision. The number of chunks may
// be another one meanwhile, which the next read finds.
type recent struct {
	mu    sync.Mutex
	known map[arrayID]knownArray
	bytes int
}

type arrayID struct{ uuid, array string }

type knownArray struct {
	chunks int
	doc    bson.Raw // nil: a write has used it
}

// chunks returns how many chunks an array had; 0: it is not known.
func (r *recent) chunks(id arrayID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[id].chunks
}

// keep remembers an array with the document that was read.
func (r *recent) keep(id arrayID, chunks int, doc bson.Raw) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = make(map[arrayID]knownArray)
	}
	if len(doc) > maxRecentBytes/4 {
		doc = nil
	}
	r.forget(id)
	for other := range r.known { // any of them
		if len(r.known) < maxRecent && r.bytes+len(doc) <= maxRecentBytes {
			break
		}
		r.forget(other)
	}
	r.known[id] = knownArray{chunks, doc}
	r.bytes += len(doc)
}

// forget removes what is known of an array. The mutex is locked.
func (r *recent) forget(id arrayID) {
	r.bytes -= len(r.known[id].doc)
	delete(r.known, id)
}

// take returns the document of an array, for one write.
func (r *recent) take(id arrayID) bson.Raw {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.known[id]
	if ok {
		r.bytes -= len(a.doc)
		r.known[id] = knownArray{chunks: a.chunks}
	}
	return a.doc
}
