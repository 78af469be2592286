package record

import (
	"encoding/json"
	"maps"
	"slices"
)

// Factor is a second factor of a user.
type Factor struct {
	Type    string `json:"-"` // its method
	Created string `json:"created"`
	From    string `json:"from,omitempty"`   // the time from which it counts, if it was added without a second factor
	Secret  string `json:"secret,omitempty"` // of a method that keeps one
}

// Factors are the second factors of a user. They are in the record that a login reads anyway and whose epoch ends
// sessions, so a second factor is never overlooked because an index lags.
type Factors struct {
	all map[string]Factor

	Recovery        []string // digests of the recovery codes that were not used
	RecoveryCreated string   // when the codes were made
}

// The orders in which second factors are shown, and stored. Others follow by name.
var (
	shown  = []string{"totp", "passkey", "email"}
	stored = []string{"totp", "email", "passkey"}
)

const (
	recoveryName        = "recovery"
	recoveryCreatedName = "recoveryCreated"
)

// List returns the second factors, without recovery codes.
func (f Factors) List() (all []Factor) {
	for _, name := range f.names(shown) {
		all = append(all, f.all[name])
	}
	return all
}

func (f Factors) names(first []string) []string {
	names := slices.Sorted(maps.Keys(f.all))
	slices.SortStableFunc(names, func(a, b string) int { return position(first, a) - position(first, b) })
	return names
}

func position(in []string, name string) int {
	if i := slices.Index(in, name); i >= 0 {
		return i
	}
	return len(in)
}

// Get returns the second factor of a type.
func (f Factors) Get(kind string) (Factor, bool) {
	one, ok := f.all[kind]
	return one, ok
}

// Has reports whether there is a second factor of a type.
func (f Factors) Has(kind string) bool { _, ok := f.all[kind]; return ok }

// Any reports whether there is a second factor.
func (f Factors) Any() bool { return len(f.all) > 0 }

// Add adds a second factor.
func (f *Factors) Add(one Factor) {
	all := maps.Clone(f.all)
	if all == nil {
		all = map[string]Factor{}
	}
	all[one.Type] = one
	f.all = all
}

// Remove removes a second factor, if there is one of the type.
func (f *Factors) Remove(kind string) {
	f.all = maps.Clone(f.all)
	delete(f.all, kind)
}

// AddedBefore returns the second factors and recovery codes that are older than a time. A thief may have added the
// others.
func (f Factors) AddedBefore(at string) Factors {
	for _, one := range f.List() {
		if one.Created >= at {
			f.Remove(one.Type)
		}
	}
	if f.RecoveryCreated >= at {
		f.Recovery, f.RecoveryCreated = nil, ""
	}
	return f
}

// IsZero reports whether nothing is stored: recovery codes are useless without a second factor.
func (f Factors) IsZero() bool { return !f.Any() }

// MarshalJSON implements json.Marshaler.
func (f Factors) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	add := func(name string, v any) error {
		value, err := json.Marshal(v)
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(append(append(text, '"'), name...), '"', ':')
		text = append(text, value...)
		return err
	}
	for _, name := range f.names(stored) {
		if err := add(name, f.all[name]); err != nil {
			return nil, err
		}
	}
	if len(f.Recovery) > 0 {
		if err := add(recoveryName, f.Recovery); err != nil {
			return nil, err
		}
	}
	if f.RecoveryCreated != "" {
		if err := add(recoveryCreatedName, f.RecoveryCreated); err != nil {
			return nil, err
		}
	}
	return append(text, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Factors) UnmarshalJSON(text []byte) error {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	*f = Factors{all: map[string]Factor{}}
	for name, value := range values {
		var err error
		switch name {
		case recoveryName:
			err = json.Unmarshal(value, &f.Recovery)
		case recoveryCreatedName:
			err = json.Unmarshal(value, &f.RecoveryCreated)
		default:
			one := Factor{Type: name}
			if err = json.Unmarshal(value, &one); err == nil && string(value) != "null" {
				f.all[name] = one
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Methods by which a user proves their identity; besides these, the name of a provider. They are in sessions and in
// events.
const (
	MethodPassword = "password"
	MethodLink     = "link"     // the link of a mail
	MethodCode     = "code"     // the code of a mail
	MethodPasskey  = "passkey"  // a signature by an authenticator that has verified its user
	MethodTOTP     = "totp"     // a code of an authenticator app
	MethodRecovery = "recovery" // a recovery code
)

// Types of second factors.
const (
	FactorTOTP    = "totp"
	FactorEmail   = "email"   // codes by mail
	FactorPasskey = "passkey" // any passkey of the user
	// FactorRecovery is a recovery code, which takes the place of a second factor once.
	FactorRecovery = "recovery"
)

// PasskeyType is the type of idents that are passkeys.
const PasskeyType = "passkey"
