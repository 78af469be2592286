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

// StreamSettings and KeptSettings are all settings of streams.
var (
	StreamSettings = streamSettings
	KeptSettings   = keptSettings
)

// Reasons returns what an outage is reported with after each of some errors of attempts to connect.
func Reasons(attempts ...error) (reasons []string) {
	s := newConnState()
	for _, err := range attempts {
		s.attemptFailed(err)
		reasons = append(reasons, s.reason())
	}
	s.mu.Lock()
	s.causeAt = s.causeAt.Add(-causeTime)
	s.mu.Unlock()
	return append(reasons, s.reason())
}
