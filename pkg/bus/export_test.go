package bus

// BatchesOff reports whether the bus has stopped publishing in batches.
func (b *Bus) BatchesOff() bool { return b.batchesOff.Load() }
