package account

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// An account belongs to whoever has the address that was proven first and is there still: its owner address. That address
// learns of every act that takes something from the account, and it alone can undo a change of the account's addresses.
// An address that somebody adds, however soon, never comes before it.

// fieldProvenAt is since when an ident is proven, where that is not when it was created.
const fieldProvenAt = "_provenAt"

// standing is an e-mail address of an account.
type standing struct {
	address string
	since   string // when its owner proved to have the address and the account; "" for one that nobody has proven
	added   bool   // to an account that was there already
}

// standings are the addresses by which an account can be reached.
type standings struct {
	all      []standing
	provider string // the address that the oldest login at a provider has verified; "" for none. It proves nothing here
}

// provenSince returns since when an ident is proven; "" for one that is not.
func provenSince(ident object.Object) string {
	if string(ident[fieldProven]) != "true" {
		return ""
	}
	at, _ := ident.Text(fieldProvenAt)
	created, _ := ident.Text("created")
	return cmp.Or(at, created)
}

// provenNow returns since when an address is proven that is now: later than all others of its user, also where the clock was set back.
func (s *Service) provenNow(ctx context.Context, user string) (string, error) {
	found, err := s.standingsOf(ctx, store.Stored{UUID: user})
	at := timestamp(s.now())
	for _, a := range found.all {
		if last, err := time.Parse(timeFormat, a.since); err == nil && a.since >= at {
			at = timestamp(last.Add(time.Microsecond))
		}
	}
	return at, err
}

// standingsOf returns the addresses of a user. Idents that are being removed do not count.
func (s *Service) standingsOf(ctx context.Context, user store.Stored) (found standings, err error) {
	oldest, unlinked := "", unlinkedOf(user.Body)
	err = forEachOwned(asService(ctx, ""), s.idents, user.UUID, func(ident store.Stored, o object.Object) error {
		if unlinked[ident.UUID] >= ident.Revision {
			return nil
		}
		kind, _ := o.Text("type")
		created, _ := o.Text("created")
		if kind != emailType {
			if address := verifiedByProvider(o[fieldProfile]); address != "" && (oldest == "" || created < oldest) {
				oldest, found.provider = created, address
			}
			return nil
		}
		if address, _ := o.Text("_id"); address != "" {
			found.all = append(found.all, standing{address, provenSince(o), string(o[fieldAdded]) == "true"})
		}
		return nil
	})
	slices.SortFunc(found.all, func(a, b standing) int {
		return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.address, b.address))
	})
	return found, err
}

// verifiedByProvider returns the address in the profile of a provider that says it has verified it; "" for none.
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
	address, err := knownAddress(p.Email)
	if err != nil {
		return ""
	}
	return address
}

// owner returns the address that was proven longest. Without one it is the only address, if the account was registered with it;
// else "": of several that nobody has proven, or one that was added, any may be a stranger's.
func (f standings) owner() string {
	for _, a := range f.all {
		if a.since != "" {
			return a.address
		}
	}
	if len(f.all) == 1 && !f.all[0].added {
		return f.all[0].address
	}
	return ""
}

// forCodes returns the address to which codes go that are a second factor: the one that was proven longest, or else the only
// one; "" for none.
func (f standings) forCodes() string {
	if owner := f.owner(); owner != "" || len(f.all) != 1 {
		return owner
	}
	return f.all[0].address
}

// forNotices returns the address at which mails about the account reach its owner; "" for none.
func (f standings) forNotices() string { return cmp.Or(f.forCodes(), f.provider) }

// since returns since when an address is proven; "" for one that is not.
func (f standings) since(address string) string {
	for _, a := range f.all {
		if a.address == address {
			return a.since
		}
	}
	return ""
}
