package record

import (
	"encoding/json"
	"time"
)

// KeyType is the type of sessions that are API keys.
const KeyType = "key"

// Session is the record of a session, or of an API key. All of them end with the epoch of their user. Each act that
// returns an account to its owner changes the epoch.
type Session struct {
	Meta

	User string `record:"user" left:"ends, ends, ends, ends"`
	Proof

	// the configured redirect of the application that it is of; "" for a browser or a program
	Application string    `record:"application" left:"ends, ends, ends, ends"`
	Expires     time.Time `record:"expires" left:"ends, ends, ends, ends"`
	LastUsed    time.Time `record:"lastUsed" left:"ends, ends, ends, ends"`
	// when it began because its user changed the password
	PasswordSet time.Time `record:"_passwordSet" left:"ends, ends, ends, ends"`

	// the user as whom an admin sees in the console, and until when; "" for nobody
	Impersonated      string    `record:"_impersonated" left:"ends, ends, ends, ends"`
	ImpersonatedUntil time.Time `record:"_impersonatedUntil" left:"ends, ends, ends, ends"`

	Address   string `record:"address,keep" left:"ends, ends, ends, ends"` // of the network
	UserAgent string `record:"userAgent,keep" left:"ends, ends, ends, ends"`

	Hash  string `record:"_hash" left:"ends, ends, ends, ends"` // of the secret half of the token
	Epoch uint64 `record:"_epoch,keep" left:"ends, ends, ends, ends"`

	// Of an API key.
	Name string `record:"name" left:"ends, ends, ends, ends"`
	Rule string `record:"rule" left:"ends, ends, ends, ends"`
}

func (s *Session) owner() string { return s.User }

// IsKey reports whether a record is an API key.
func (s Session) IsKey() bool { return s.Provider == KeyType }

// Proven returns the proof of identity of a session's user. A session of an earlier release began with one factor. An
// API key has no time, since it is not a proof of identity.
func (s Session) Proven() Proof {
	p := s.complete()
	if p.At.IsZero() && !s.IsKey() {
		p.At, _ = time.Parse(timeFormat, s.Created)
	}
	return p
}

// Proof is a user's proof of identity.
type Proof struct {
	Provider string   `record:"type" left:"ends, ends, ends, ends"`    // the type of the session
	Methods  []string `record:"methods" left:"ends, ends, ends, ends"` // in the order of the steps
	// 1, or 2 if the methods are two factors together
	AAL int       `record:"aal" left:"ends, ends, ends, ends"`
	At  time.Time `record:"authenticatedAt" left:"ends, ends, ends, ends"` // the last time
	// the user has a second factor that could not be requested
	Limited bool `record:"_limited" left:"ends, ends, ends, ends"`
	Again   bool // the session replaces one whose user has proven their identity again
}

func (p Proof) complete() Proof {
	if p.AAL == 0 {
		p.AAL = 1
	}
	return p
}

// Failures are consecutive failed logins to an account, or wrong codes. With Count 0, At is when they were reset.
type Failures struct {
	Count int
	At    time.Time
}

type storedFailures struct {
	At    string `json:"at"`
	Count int    `json:"count"`
}

// MarshalJSON implements json.Marshaler.
func (f Failures) MarshalJSON() ([]byte, error) {
	return json.Marshal(storedFailures{Timestamp(f.At), f.Count})
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Failures) UnmarshalJSON(text []byte) error {
	var s storedFailures
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	at, _ := time.Parse(timeFormat, s.At)
	*f = Failures{s.Count, at}
	return nil
}
