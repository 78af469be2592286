package bus

import "time"

// BatchesOff reports whether the bus has stopped publishing in batches.
func (b *Bus) BatchesOff() bool { return b.batchesOff.Load() }

// SetPublishTimeout changes how long a batch may take, and returns what restores it.
func SetPublishTimeout(d time.Duration) (restore func()) {
	before := publishTimeout
	publishTimeout = d
	return func() { publishTimeout = before }
}
