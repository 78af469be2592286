package bus

import "belfry/pkg/event"

// Live sends an event on the plain subject of its name, for instance
// Store.Saved, to whoever listens there now. It is best effort: what can't be
// sent at once is dropped.
func (b *Bus) Live(name event.Name, payload []byte) {
	if b.Wanted(name) && b.conn.IsConnected() {
		_ = b.conn.Publish(string(name), payload)
	}
}

// Wanted reports whether anyone may be listening on the plain subject of an
// event, so that an announcement that nobody hears is not even made. A cluster
// does not say who listens: there it is always true.
func (b *Bus) Wanted(name event.Name) bool {
	return b.embedded == nil || b.embedded.interest(string(name))
}
