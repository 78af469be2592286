package seal

import (
	"crypto/cipher"
	"time"

	"golang.org/x/crypto/chacha20poly1305"

	"belfry/pkg/errs"
)

// Key is a key and the time in which it is used. Processes that share keys seal with one
// only once all of them can open its texts, and open the texts of an earlier one
// until its end.
type Key struct {
	Secret []byte    // KeySize bytes
	From   time.Time // texts are sealed with it from then on, and opened at any time before
	Until  time.Time // texts are not opened after; zero: without an end
}

// keyring is keys and, by the same index, their ciphers.
type keyring struct {
	keys  []Key // without secrets
	aeads []cipher.AEAD
}

// NewWithKeys returns a Sealer with several keys, see SetKeys. now is the clock.
func NewWithKeys(keys []Key, now func() time.Time) (*Sealer, error) {
	s := &Sealer{now: now}
	return s, s.SetKeys(keys)
}

// SetKeys replaces the keys, oldest first. Errors: errs.Internal for a key of the wrong
// size, and for none; the keys stay as they were. No error contains a key.
func (s *Sealer) SetKeys(keys []Key) error {
	if len(keys) == 0 {
		return errs.New(errs.Internal, "there is no key for sealing")
	}
	var ring keyring
	for _, k := range keys {
		aead, err := chacha20poly1305.NewX(k.Secret)
		if err != nil {
			return errs.New(errs.Internal, "the key for sealing has %d bytes instead of %d", len(k.Secret), KeySize)
		}
		ring.keys = append(ring.keys, Key{From: k.From, Until: k.Until})
		ring.aeads = append(ring.aeads, aead)
	}
	s.ring.Store(&ring)
	return nil
}

// Current returns the index of the key that texts are sealed with at a time: the last
// that has begun, or else the first.
func Current(keys []Key, now time.Time) int {
	for i := len(keys) - 1; i > 0; i-- {
		if !keys[i].From.After(now) {
			return i
		}
	}
	return 0
}

// Ended reports whether the key no longer opens texts.
func (k Key) Ended(now time.Time) bool { return !k.Until.IsZero() && !k.Until.After(now) }

// sealing is the key that texts are sealed with now.
func (s *Sealer) sealing() cipher.AEAD {
	ring := s.ring.Load()
	return ring.aeads[Current(ring.keys, s.now())]
}

// opening calls try with each key that texts are opened with now, newest first, until it
// returns true.
func (s *Sealer) opening(try func(cipher.AEAD) bool) bool {
	ring, now := s.ring.Load(), s.now()
	for i := len(ring.keys) - 1; i >= 0; i-- {
		if !ring.keys[i].Ended(now) && try(ring.aeads[i]) {
			return true
		}
	}
	return false
}
