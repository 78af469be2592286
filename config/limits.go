package config

// RequestLimits bound what one client may ask for a second. 0 is no limit.
type RequestLimits struct {
	Address Rates    `key:"address"`
	User    Rates    `key:"user"`
	Bus     BusRates `key:"bus"`

	// bytes of replies to requests with a key that are kept for a user, or a network address
	Idempotency int64 `key:"idempotency" is:"sizeOrNone 1 1TiB" default:"16MiB"`

	Loopback bool `key:"loopback"` // clients at loopback addresses are limited as well
}

// Rates are the limits of a client over HTTP per second: requests, and bytes of lists and uploads. The largest request,
// a full page or a part of an upload, must not exceed them.
type Rates struct {
	Reads       int `key:"reads" is:"number 0 1000000"`
	Lists       int `key:"lists" is:"number 0 1000000"`
	Writes      int `key:"writes" is:"number 0 1000000"`
	ListBytes   int `key:"listBytes" is:"sizeOrNone 1MiB 1TiB"`
	UploadBytes int `key:"uploadBytes" is:"sizeOrNone 64KiB 1TiB"`
}

// BusRates are the limits of a client on the bus. The largest message must not exceed the bytes of a second.
type BusRates struct {
	Requests int `key:"requests" is:"number 0 1000000" default:"20000"`
	Bytes    int `key:"bytes" is:"sizeOrNone 1MiB 1TiB" default:"256MiB"`
}

// SetDefaults sets the limits of addresses and users.
func (l *RequestLimits) SetDefaults() {
	l.Address = Rates{Reads: 4000, Lists: 400, Writes: 2000, ListBytes: 128 << 20, UploadBytes: 256 << 20}
	l.User = Rates{Reads: 2000, Lists: 200, Writes: 1000, ListBytes: 64 << 20, UploadBytes: 128 << 20}
}
