package admin

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"belfry/pkg/account/flow/changes"
	"belfry/pkg/account/flow/deletion"
	"belfry/pkg/account/flow/enrollment"
	"belfry/pkg/account/flow/links"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Account is a user as admins see them: without secrets.
type Account struct {
	UUID        string             `json:"uuid"`
	Admin       bool               `json:"admin"` // by the rule of the configuration
	Disabled    bool               `json:"disabled"`
	HasPassword bool               `json:"hasPassword"`
	HasFactor   bool               `json:"hasSecondFactor"`
	Deletion    *deletion.Plan     `json:"deletion,omitempty"` // nil: none is planned
	Undoable    []changes.Undoable `json:"undoable,omitempty"` // changes of address that can be undone

	User json.RawMessage `json:"user"` // without the fields that never leave the server

	// nil in a page of Accounts
	Idents     []IdentInfo `json:"idents,omitempty"`
	Invitation *Invitation `json:"invitation,omitempty"`

	// Only of a single user; nil in a list.
	Factors  *enrollment.Factors `json:"secondFactors,omitempty"`
	Sessions []sessions.Info     `json:"sessions,omitempty"`
	Keys     []keys.Info         `json:"keys,omitempty"`
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
	CloneSuspected string `json:"cloneSuspected,omitempty"` // when its signature counter decreased
}

// Account returns a user as admins see them.
func (s *Admin) Account(ctx context.Context, stored store.Stored) (Account, error) {
	user, err := s.DB.Users.Of(stored)
	if err != nil {
		return Account{}, err
	}
	seen, err := s.Sessions.SeenByRules(user)
	if err != nil {
		return Account{}, err
	}
	return s.accountOf(ctx, user, seen), nil
}

func (s *Admin) accountOf(ctx context.Context, user record.User, seen object.Object) Account {
	return Account{
		UUID: user.UUID, Admin: s.Admins.Holds(ctx, seen), Disabled: user.MarkedDisabled,
		HasPassword: user.Password != "",
		HasFactor:   user.Factors.Any(), Deletion: user.Plan(), Undoable: s.Changes.Undoable(user), User: seen.Encode(),
	}
}

// AccountDetails returns a user as admins see them, with idents and sessions.
func (s *Admin) AccountDetails(ctx context.Context, stored store.Stored) (Account, error) {
	user, err := s.DB.Users.Of(stored)
	if err != nil {
		return Account{}, err
	}
	seen, err := s.Sessions.SeenByRules(user)
	if err != nil {
		return Account{}, err
	}
	a := s.accountOf(ctx, user, seen)
	idents, err := s.identsOf(record.AsService(ctx, ""), user.UUID)
	if err != nil {
		return a, err
	}
	a.Idents, a.Invitation = infosOf(idents), s.invitationOf(user, idents)
	second := s.Enrollment.FactorsInfo(ctx, user, seen)
	a.Factors = &second
	if a.Sessions, err = s.Sessions.ListOf(ctx, user, ""); err != nil {
		return a, err
	}
	a.Keys, err = s.Keys.ListOf(ctx, user)
	return a, err
}

// identsOf returns the idents of a user, sorted.
func (s *Admin) identsOf(ctx context.Context, user string) (all []record.Ident, err error) {
	for ident, err := range s.DB.Idents.Owned(ctx, user) {
		if err != nil {
			return nil, err
		}
		all = append(all, ident)
	}
	slices.SortFunc(all, func(x, y record.Ident) int { return strings.Compare(x.UUID, y.UUID) })
	return all, nil
}

// infosOf returns idents as admins see them.
func infosOf(idents []record.Ident) (all []IdentInfo) {
	for _, ident := range idents {
		i := IdentInfo{UUID: ident.UUID, Type: ident.Type, Validated: ident.Validated,
			LastUsed: record.TimeText(ident.LastUsed), FailedLogins: ident.Failures.Count}
		if links.IsPasskey(ident) {
			i.Name, i.CloneSuspected = ident.Name, ident.CloneSuspected
		}
		all = append(all, i)
	}
	return all
}

// Accounts returns a page of users in the order of their uuids, and the start of the next page; nil after the last.
func (s *Admin) Accounts(ctx context.Context, after []byte, limit int) (page []Account, next []byte, err error) {
	users, next, err := s.DB.Users.Store.Scan(record.AsService(ctx, ""), after, limit)
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
