package config

import "fmt"

// RequestLimits bound what one client may ask for a second. 0 is no limit.
type RequestLimits struct {
	Address, User Rates
	Bus           BusRates
	Loopback      bool // clients at loopback addresses are limited as well

	Idempotency int64 // bytes of replies to requests with a key that are kept for a user, or a network address
}

// Rates are the limits of a client over HTTP: requests, and bytes of lists and uploads.
type Rates struct {
	Reads, Lists, Writes   int
	ListBytes, UploadBytes int
}

// BusRates are the limits of a client on the bus.
type BusRates struct {
	Requests, Bytes int
}

// Least bytes a second: a page or a message of the largest size, or what is read of an upload
// at once, must not exceed what a client may ask for at once.
const (
	minMessageRate = 1 << 20
	minUploadRate  = 64 << 10
	maxRate        = 1_000_000
	maxByteRate    = 1 << 40
)

func (c *Config) readLimits(s *section) {
	l := &c.Limits
	l.Address = Rates{Reads: 4000, Lists: 400, Writes: 2000, ListBytes: 128 << 20, UploadBytes: 256 << 20}
	l.User = Rates{Reads: 2000, Lists: 200, Writes: 1000, ListBytes: 64 << 20, UploadBytes: 128 << 20}
	l.Bus = BusRates{Requests: 20_000, Bytes: 256 << 20}
	l.Address.read(s.section("address"))
	l.User.read(s.section("user"))
	bus := s.section("bus")
	decode(bus, "requests", &l.Bus.Requests, requestRate)
	decode(bus, "bytes", &l.Bus.Bytes, byteRate(minMessageRate))
	bus.rejectUnknown()
	l.Idempotency = 16 << 20
	decode(s, "idempotency", &l.Idempotency, func(text string) (int64, error) {
		if text == "0" {
			return 0, nil
		}
		return sizeIn(maxByteRate)(text)
	})
	decode(s, "loopback", &l.Loopback, parseFlag)
	if !s.has("loopback") {
		c.derived = append(c.derived, func() { l.Loopback = !isLocal(c.BaseURL) })
	}
	s.rejectUnknown()
}

func (r *Rates) read(s *section) {
	decode(s, "reads", &r.Reads, requestRate)
	decode(s, "lists", &r.Lists, requestRate)
	decode(s, "writes", &r.Writes, requestRate)
	decode(s, "listBytes", &r.ListBytes, byteRate(minMessageRate))
	decode(s, "uploadBytes", &r.UploadBytes, byteRate(minUploadRate))
	s.rejectUnknown()
}

// requestRate accepts a number of requests a second, or 0.
func requestRate(text string) (int, error) {
	n, err := numberIn(0, maxRate)(text)
	return int(n), err
}

// byteRate accepts a number of bytes a second of at least low, or 0.
func byteRate(low int64) func(string) (int, error) {
	return func(text string) (int, error) {
		if text == "0" {
			return 0, nil
		}
		n, err := sizeIn(maxByteRate)(text)
		if err == nil && n < low {
			err = fmt.Errorf("expected a size from %s, or 0 for no limit", showSize(low))
		}
		return int(n), err
	}
}
