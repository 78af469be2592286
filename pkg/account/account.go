package account

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// Account is a user as admins see them: without secrets.
type Account struct {
	UUID        string        `json:"uuid"`
	Admin       bool          `json:"admin"` // by the rule of the configuration
	Disabled    bool          `json:"disabled"`
	HasPassword bool          `json:"hasPassword"`
	HasFactor   bool          `json:"hasSecondFactor"`
	Deletion    *DeletionPlan `json:"deletion,omitempty"` // nil: none is planned
	Undoable    []Undoable    `json:"undoable,omitempty"` // changes of address that can be undone

	User json.RawMessage `json:"user"` // without the fields that never leave the server

	// Those of the user alone; of a list they are nil.
	Idents   []IdentInfo   `json:"idents,omitempty"`
	Factors  *Factors      `json:"secondFactors,omitempty"`
	Sessions []SessionInfo `json:"sessions,omitempty"`
	Keys     []KeyInfo     `json:"keys,omitempty"`
}

// IdentInfo is an ident as admins see it.
type IdentInfo struct {
	UUID         string `json:"uuid"`
	Type         string `json:"type"`
	Validated    bool   `json:"validated"`
	LastUsed     string `json:"lastUsed,omitempty"`
	FailedLogins int    `json:"failedLogins,omitempty"` // consecutive ones

	// Of a passkey.
	Name           string `json:"name,omitempty"`
	CloneSuspected string `json:"cloneSuspected,omitempty"` // when its signature counter went back
}

// Account returns a user as admins see them.
func (s *Service) Account(ctx context.Context, user store.Stored) (Account, error) {
	stored, err := user.Object()
	if err != nil {
		return Account{}, err
	}
	seen, err := s.seenByRules(user, stored)
	if err != nil {
		return Account{}, err
	}
	password, _ := stored.Text(fieldPassword)
	return Account{
		UUID: user.UUID, Admin: s.admins.Holds(ctx, seen), Disabled: isMarked(stored, markDisabled),
		HasPassword: password != "", HasFactor: factorsOf(user.Body).any(), Deletion: planOf(stored), Undoable: s.undoable(user.Body), User: seen.Encode(),
	}, nil
}

// AccountDetails returns a user as admins see them, with idents and sessions.
func (s *Service) AccountDetails(ctx context.Context, user store.Stored) (Account, error) {
	a, err := s.Account(ctx, user)
	if err != nil {
		return a, err
	}
	err = forEachOwned(asService(ctx, ""), s.idents, user.UUID, func(ident store.Stored, o object.Object) error {
		i := IdentInfo{UUID: ident.UUID, Validated: string(o["validated"]) == "true", FailedLogins: failuresOf(ident).Count}
		i.Type, _ = o.Text("type")
		i.LastUsed, _ = o.Text("lastUsed")
		if p, ok := passkeyOf(o); ok {
			info := passkeyInfo(ident.UUID, o, p)
			i.Name, i.CloneSuspected = info.Name, info.CloneSuspected
		}
		a.Idents = append(a.Idents, i)
		return nil
	})
	if err != nil {
		return a, err
	}
	stored, err := user.Object()
	if err != nil {
		return a, err
	}
	seen, err := s.seenByRules(user, stored)
	if err != nil {
		return a, err
	}
	second := s.factorsInfo(ctx, user, seen)
	a.Factors = &second
	slices.SortFunc(a.Idents, func(x, y IdentInfo) int { return strings.Compare(x.UUID, y.UUID) })
	if a.Sessions, err = s.ListSessions(ctx, &Session{User: user}); err != nil {
		return a, err
	}
	a.Keys, err = s.keysOf(ctx, user)
	return a, err
}

// Accounts returns a page of users in the order of their uuids, and where the next page
// begins; nil after the last.
func (s *Service) Accounts(ctx context.Context, after []byte, limit int) (page []Account, next []byte, err error) {
	users, next, err := s.users.Scan(asService(ctx, ""), after, limit)
	if err != nil {
		return nil, nil, err
	}
	for _, user := range users {
		a, err := s.Account(ctx, user)
		if err != nil {
			return nil, nil, err
		}
		page = append(page, a)
	}
	return page, next, nil
}

// maxNamed is how many idents of a user are read to find an address.
const maxNamed = 10

// Address returns the e-mail address with which a user logs in, or else the uuid of another ident; "" for a user without
// idents. It shows people who somebody is: users choose their other fields themselves.
func (s *Service) Address(ctx context.Context, user string) (string, error) {
	other, read := "", 0
	for ident, err := range s.idents.Linked(asService(ctx, ""), fieldUser, user, maxNamed) {
		if err != nil {
			return "", err
		}
		if owner, _ := object.Text(object.Field(ident.Body, fieldUser)); owner != user {
			continue // the index lags
		}
		if address, isEmail := strings.CutSuffix(ident.UUID, "_email"); isEmail {
			return address, nil
		}
		other = cmp.Or(other, ident.UUID)
		if read++; read == maxNamed {
			break
		}
	}
	return other, nil
}
