package record

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"
)

// An account belongs to the owner address: of its present addresses, the one that was proven first. That address gets a
// notice of every act that removes something from the account, and only that address can undo a change of the account's
// addresses. An added address never precedes it, however early it is added.

// Standing is an e-mail address of an account.
type Standing struct {
	Address string
	Since   string // when its owner proved to have the address and the account; "" for an unproven address
	Added   bool   // to an existing account
}

// Standings are the addresses by which an account can be reached.
type Standings struct {
	All      []Standing
	Provider string // the address that the oldest login at a provider has verified; "" for none. It proves nothing here
}

// ProvenNow returns the time for an address that is proven now. It is later than the times of all other addresses of
// the user, even if the clock was set back.
func (s *Stores) ProvenNow(ctx context.Context, user string) (string, error) {
	found, err := s.StandingsOf(ctx, UserOf(user))
	at := Timestamp(s.Now())
	for _, a := range found.All {
		if last, err := time.Parse(timeFormat, a.Since); err == nil && a.Since >= at {
			at = Timestamp(last.Add(time.Microsecond))
		}
	}
	return at, err
}

// StandingsOf returns the addresses of a user. Idents that are being removed do not count.
func (s *Stores) StandingsOf(ctx context.Context, user User) (found Standings, err error) {
	oldest := ""
	for ident, err := range s.Idents.Owned(AsService(ctx, ""), user.UUID) {
		if err != nil {
			return found, err
		}
		if user.Unlinked[ident.UUID] >= ident.Revision {
			continue
		}
		if ident.Type != Email {
			if address := verifiedByProvider(ident.Profile); address != "" && (oldest == "" || ident.Created < oldest) {
				oldest, found.Provider = ident.Created, address
			}
			continue
		}
		if ident.ID != "" {
			found.All = append(found.All, Standing{ident.ID, ident.ProvenSince(), ident.Added})
		}
	}
	slices.SortFunc(found.All, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.Address, b.Address))
	})
	return found, nil
}

// verifiedByProvider returns the address in a provider's profile that the provider has verified; "" for none.
func verifiedByProvider(profile []byte) string {
	var p struct {
		Email         string `json:"email"`
		EmailVerified any    `json:"email_verified"` // OpenID Connect; Apple sends text
		Verified      any    `json:"verified"`       // Discord
	}
	if json.Unmarshal(profile, &p) != nil {
		return ""
	}
	if p.EmailVerified != true && p.EmailVerified != "true" && p.Verified != true {
		return ""
	}
	address, err := KnownAddress(p.Email)
	if err != nil {
		return ""
	}
	return address
}

// Owner returns the address that was proven longest. Without a proven address it is the only address, if the account
// was registered with it. Otherwise it is "", because an added address, or any of several unproven ones, may be a
// stranger's.
func (f Standings) Owner() string {
	for _, a := range f.All {
		if a.Since != "" {
			return a.Address
		}
	}
	if len(f.All) == 1 && !f.All[0].Added {
		return f.All[0].Address
	}
	return ""
}

// ForCodes returns the address for codes that are a second factor: the address that was proven longest, or else the
// only one; "" for none.
func (f Standings) ForCodes() string {
	if owner := f.Owner(); owner != "" || len(f.All) != 1 {
		return owner
	}
	return f.All[0].Address
}

// ForNotices returns the address at which mails about the account reach its owner; "" for none.
func (f Standings) ForNotices() string { return cmp.Or(f.ForCodes(), f.Provider) }

// Since returns the time since when an address is proven; "" for an unproven one.
func (f Standings) Since(address string) string {
	for _, a := range f.All {
		if a.Address == address {
			return a.Since
		}
	}
	return ""
}
