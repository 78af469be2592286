package bus

import "belfry/pkg/event"

// Live publishes an event on the plain subject of its name, for instance
// Store.Saved, to the subscribers of that moment. It is best effort: an event
// that can't be sent at once is dropped.
func (b *Bus) Live(name event.Name, payload []byte) {
	if b.HasInterest(name) && b.conn.IsConnected() {
		_ = b.conn.Publish(string(name), payload)
	}
}

// HasInterest reports whether anyone may be subscribed to the plain subject of an
// event, so that an announcement without subscribers is not even encoded. A
// cluster does not report its subscriptions: there it is always true.
func (b *Bus) HasInterest(name event.Name) bool {
	return b.opts.Server == nil || b.opts.Server.HasInterest(string(name))
}
