package rounds

import "context"

// request is an event's part of a batch.
type request struct {
	source string
	fence  bool        // a client waits for the round
	trace  string      // of the event
	here   bool        // no other process is asked for the round: one has asked for it, or one has failed
	notify func(error) // is called when the batch has ended; may be nil
}

// batch is the sources that the next round of a key serves.
type batch struct {
	sources []string
	fence   bool          // of one of the requests
	here    bool          // of one of the requests
	trace   string        // of the first event that has one; the write is a part of it
	done    chan struct{} // closed when err is set
	err     error
	notify  []func(error) // called then
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// end ends a batch that no longer accepts requests.
func (b *batch) end(err error) {
	b.err = err
	close(b.done)
	for _, notify := range b.notify {
		notify(err)
	}
}

func (b *batch) wait(ctx context.Context) error {
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
