package keys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store/policy"
)

// An API key is an object in the store of sessions, of the type record.KeyType. It is found, hashed
// and ended as a session is: by its id, with its user, and with all sessions of its user.
// It differs in that use does not extend it, logins don't end it, and it can't manage the account.

const (
	maxKeys    = 100  // of one user
	maxKeyName = 100  // bytes
	maxKeyRule = 1000 // bytes
)

// never is the expiry of a key that does not expire.
var never = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// New is an API key to be made.
type New struct {
	Name    string
	Expires time.Time // zero: never
	Rule    string    // CEL over method and path of a request; "": any request
}

// Info is an API key, as its user sees it.
type Info struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Rule     string `json:"rule,omitempty"`
	Created  string `json:"created"`
	LastUsed string `json:"lastUsed,omitempty"` // to about an hour; absent before the first use
	Expires  string `json:"expires,omitempty"`  // absent: never
}

// Create makes an API key for the logged-in user, and returns its token, which is
// stored nowhere. A user with a password has to give it: a stolen session must not become a
// permanent login. Errors: Invalid; Denied; Conflict when there are too many; Limited.
func (s *Keys) Create(ctx context.Context, k New, password string, from sessions.Client) (Info, string, error) {
	me := from.Session
	if err := sessions.RequireLogin(me); err != nil {
		return Info{}, "", err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return Info{}, "", err
	}
	if err := s.Passwords.RequireProof(ctx, me, password); err != nil {
		return Info{}, "", err
	}
	// A rule is compiled only for users who have proven their identity.
	if err := s.ValidateKey(k); err != nil {
		s.Guesses.Return(from.Address)
		return Info{}, "", err
	}
	ctx = record.AsService(ctx, me.User.UUID)
	if err := s.Sessions.CheckActive(ctx, me); err != nil {
		return Info{}, "", err
	}
	if err := s.Notices.Announce(ctx, me.User,
		notices.Announcement{Kind: notices.NoticeKeyAdded, About: k.Name}); err != nil {
		return Info{}, "", err
	}
	info, token, err := s.SaveKey(ctx, k, me.User, from)
	if err == nil {
		s.Guesses.Return(from.Address)
	}
	return info, token, err
}

// ValidateKey reports Invalid for a key that can't be made.
func (s *Keys) ValidateKey(k New) error {
	var found []errs.Field
	refuse := func(field, message string) {
		found = append(found, errs.Field{Pointer: "/" + field, Message: message})
	}
	if n := len(k.Name); n == 0 || n > maxKeyName || !utf8.ValidString(k.Name) ||
		strings.ContainsFunc(k.Name, unicode.IsControl) || strings.TrimSpace(k.Name) != k.Name {
		refuse("name",
			fmt.Sprintf("must have 1 to %d bytes, without control characters, or spaces at its ends", maxKeyName))
	}
	if !k.Expires.IsZero() && (!k.Expires.After(s.DB.Now()) || k.Expires.After(never)) {
		refuse("expires", "must be in the future")
	}
	if len(k.Rule) > maxKeyRule {
		refuse("rule", fmt.Sprintf("must have at most %d bytes", maxKeyRule))
	} else if k.Rule != "" {
		_, problems := policy.CompileRequestRule(k.Rule)
		for _, p := range problems {
			refuse("rule", fmt.Sprintf("at %d:%d: %s", p.Line, p.Column, p.Message))
		}
	}
	if found == nil {
		return nil
	}
	return &errs.Error{Kind: errs.Invalid, Message: "the API key can't be made", Fields: found}
}

// SaveKey makes a key, which has been checked, and returns its token.
func (s *Keys) SaveKey(ctx context.Context, k New, user record.User, from sessions.Client) (Info, string, error) {
	if user.MarkedDisabled {
		return Info{}, "", errs.Wrap(sessions.ErrDisabled, errs.Denied, "the user is disabled: enable them first")
	}
	if user.Plan() != nil {
		return Info{}, "", errs.New(errs.Conflict, "the deletion of the account is planned: cancel it first")
	}
	keys, err := s.ListOf(ctx, user)
	if err != nil {
		return Info{}, "", err
	}
	if len(keys) >= maxKeys {
		return Info{}, "", errs.New(errs.Conflict, "the user has %d API keys, the maximum: revoke one first", len(keys))
	}
	if k.Expires.IsZero() {
		k.Expires = never
	}
	id, half := secret.Random(sessions.IDSize), secret.New()
	key := record.Session{
		User: user.UUID, Proof: record.Proof{Provider: record.KeyType}, Name: k.Name, Rule: k.Rule, Expires: k.Expires,
		Address: from.Address, UserAgent: from.UserAgent, Hash: secret.Digest(half), Epoch: user.Epoch,
	}
	key.Publish(s.DB.Audit(event.AuthKeyCreated, user.UUID, event.AuthDetails{Factor: id}))
	key, err = s.DB.Sessions.Create(ctx, id, key)
	if err != nil {
		return Info{}, "", err
	}
	return keyInfo(key), id + half, nil
}

func keyInfo(key record.Session) Info {
	info := Info{ID: key.UUID, Name: key.Name, Rule: key.Rule, Created: key.Created,
		LastUsed: record.TimeText(key.LastUsed), Expires: record.TimeText(key.Expires)}
	if key.Expires.Equal(never) {
		info.Expires = ""
	}
	return info
}

// List returns the API keys of the logged-in user, the oldest first.
func (s *Keys) List(ctx context.Context, me *sessions.Session) ([]Info, error) {
	return s.ListOf(ctx, me.User)
}

// ListOf returns the valid API keys of a user, the oldest first.
func (s *Keys) ListOf(ctx context.Context, user record.User) ([]Info, error) {
	list := []Info{}
	for session, err := range s.Sessions.AllOf(ctx, user) {
		if err != nil {
			return list, err
		}
		if session.IsKey() {
			list = append(list, keyInfo(session))
		}
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Created+a.ID, b.Created+b.ID) })
	return list, nil
}

// Revoke ends an API key of the logged-in user. NotFound if it is not a key of the user.
func (s *Keys) Revoke(ctx context.Context, me *sessions.Session, id string) error {
	return s.RevokeKey(record.AsService(ctx, me.User.UUID), me.User.UUID, id)
}

// RevokeKey ends an API key of a user. NotFound if it is not a key of the user.
func (s *Keys) RevokeKey(ctx context.Context, user, id string) error {
	key, err := s.Sessions.OfUser(ctx, user, id, true)
	if errors.Is(err, errs.NotFound) {
		return errs.New(errs.NotFound, "there is no API key with this id")
	}
	if err != nil {
		return err
	}
	if err := s.Notices.Announce(ctx, record.UserOf(user),
		notices.Announcement{Kind: notices.NoticeKeyRemoved, About: key.Name,
			Always: notices.ActsForOthers(ctx, user)}); err != nil {
		return err
	}
	return s.Sessions.End(ctx, id, s.DB.Audit(event.AuthKeyRevoked, user, event.AuthDetails{Factor: id}))
}
