package config

import (
	"time"

	"belfry/config/decode"
)

// Passwords say which new passwords are refused.
type Passwords struct {
	Common   bool     `key:"common" default:"true"`    // the most common ones
	MinScore int64    `key:"minScore" is:"number 0 4"` // those whose strength is estimated as less, of 0 to 4; 0: nothing is estimated
	Breached Breached `key:"breached"`                 // those in the data of breaches
}

// Breached names a server with the range API of Have I Been Pwned; without a URL none is asked.
type Breached struct {
	URL      string        `key:"url" is:"baseURL"`
	Timeout  time.Duration `key:"timeout" is:"duration 10ms 10s" default:"1s"`
	MinCount int64         `key:"minCount" is:"number 1 1000000000" default:"1"` // least number of occurrences that refuses a password
}

// Validate refuses settings of a server that is not named.
func (*Breached) Validate(s *decode.Section) {
	for _, key := range [...]string{"timeout", "minCount"} {
		if s.Has(key) && !s.Has("url") {
			s.Problem(key, "needs url")
		}
	}
}
