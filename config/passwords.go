package config

import "time"

// Passwords say which new passwords are refused.
type Passwords struct {
	Common   bool     // the most common ones
	MinScore int64    // those whose strength is estimated as less, of 0 to 4; 0: nothing is estimated
	Breached Breached // those in the data of breaches
}

// Breached names a server with the range API of Have I Been Pwned; without a URL none is asked.
type Breached struct {
	URL      string
	Timeout  time.Duration
	MinCount int64 // least number of occurrences that refuses a password
}

func (p *Passwords) read(s *section) {
	*p = Passwords{Common: true, Breached: Breached{Timeout: time.Second, MinCount: 1}}
	decode(s, "common", &p.Common, parseFlag)
	decode(s, "minScore", &p.MinScore, numberIn(0, 4))
	b := s.section("breached")
	decode(b, "url", &p.Breached.URL, parseBaseURL)
	decode(b, "timeout", &p.Breached.Timeout, durationIn(10*time.Millisecond, 10*time.Second, "from 10ms to 10s"))
	decode(b, "minCount", &p.Breached.MinCount, numberIn(1, 1_000_000_000))
	for _, key := range [...]string{"timeout", "minCount"} {
		if b.has(key) && !b.has("url") {
			b.problem(key, "needs url")
		}
	}
	b.rejectUnknown()
	s.rejectUnknown()
}
