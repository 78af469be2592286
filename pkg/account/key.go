package account

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
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

// never is when a key expires that does not.
var never = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// Key is what distinguishes the session of an API key. nil is that of a login.
type Key struct {
	Name string
	rule *policy.RequestRule // nil: none that can be evaluated
	open bool                // there is no rule
}

// Allows reports whether the rule of the key allows a request. A login allows any. What the rule costs is taken from the
// budget, nil for none.
func (k *Key) Allows(ctx context.Context, budget *policy.Budget, method, path string) bool {
	return k == nil || k.open || k.rule.Holds(ctx, budget, method, path)
}

// RequireLogin returns Denied for the session of an API key: who manages the account has to log in.
func RequireLogin(me *Session) error {
	if me == nil || me.Key == nil {
		return nil
	}
	return errs.Wrap(ErrInsufficientScope, errs.Denied, "an API key can't do this: log in")
}

// NewKey is an API key to be made.
type NewKey struct {
	Name    string
	Expires time.Time // zero: never
	Rule    string    // CEL over method and path of a request; "": any request
}

// KeyInfo is an API key as its user sees it.
type KeyInfo struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Rule     string `json:"rule,omitempty"`
	Created  string `json:"created"`
	LastUsed string `json:"lastUsed,omitempty"` // to about an hour; absent before the first use
	Expires  string `json:"expires,omitempty"`  // absent: never
}

// CreateKey makes an API key for the user who is logged in, and returns its token, which is
// stored nowhere. A user with a password has to give it: a stolen session must not become a
// permanent login. Errors: Invalid; Denied; Conflict when there are too many; Limited.
func (s *Service) CreateKey(ctx context.Context, k NewKey, password string, from Client) (KeyInfo, string, error) {
	me := from.Session
	if err := RequireLogin(me); err != nil {
		return KeyInfo{}, "", err
	}
	if err := s.guesses.Take(from.Address); err != nil {
		return KeyInfo{}, "", err
	}
	if err := s.requireProof(ctx, me, password); err != nil {
		return KeyInfo{}, "", err
	}
	// A rule is compiled for those alone who have proven who they are.
	if err := s.validateKey(k); err != nil {
		s.guesses.Return(from.Address)
		return KeyInfo{}, "", err
	}
	ctx = record.AsService(ctx, me.User.UUID)
	if err := s.checkActive(ctx, me); err != nil {
		return KeyInfo{}, "", err
	}
	if err := s.announce(ctx, me.User, announcement{kind: NoticeKeyAdded, about: k.Name}); err != nil {
		return KeyInfo{}, "", err
	}
	info, token, err := s.saveKey(ctx, k, me.User, from)
	if err == nil {
		s.guesses.Return(from.Address)
	}
	return info, token, err
}

// IssueKey makes an API key for a user on behalf of an admin, as the methods of manage.go.
func (s *Service) IssueKey(ctx context.Context, stored store.Stored, k NewKey) (KeyInfo, string, error) {
	if err := s.validateKey(k); err != nil {
		return KeyInfo{}, "", err
	}
	user, err := s.db.Users.Of(stored)
	if err != nil {
		return KeyInfo{}, "", err
	}
	if err := s.announce(record.Managing(ctx), user, announcement{kind: NoticeKeyAdded, about: k.Name, always: true}); err != nil {
		return KeyInfo{}, "", err
	}
	return s.saveKey(record.Managing(ctx), k, user, Client{})
}

// validateKey reports Invalid for a key that can't be made.
func (s *Service) validateKey(k NewKey) error {
	var found []errs.Field
	refuse := func(field, message string) {
		found = append(found, errs.Field{Pointer: "/" + field, Message: message})
	}
	if n := len(k.Name); n == 0 || n > maxKeyName || !utf8.ValidString(k.Name) || strings.ContainsFunc(k.Name, unicode.IsControl) || strings.TrimSpace(k.Name) != k.Name {
		refuse("name", fmt.Sprintf("must have 1 to %d bytes, without control characters, or spaces at its ends", maxKeyName))
	}
	if !k.Expires.IsZero() && (!k.Expires.After(s.now()) || k.Expires.After(never)) {
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

func (s *Service) saveKey(ctx context.Context, k NewKey, user record.User, from Client) (KeyInfo, string, error) {
	if user.MarkedDisabled {
		return KeyInfo{}, "", errs.Wrap(ErrDisabled, errs.Denied, "the user is disabled: enable them first")
	}
	if user.Plan() != nil {
		return KeyInfo{}, "", errs.New(errs.Conflict, "the deletion of the account is planned: take that back first")
	}
	keys, err := s.keysOf(ctx, user)
	if err != nil {
		return KeyInfo{}, "", err
	}
	if len(keys) >= maxKeys {
		return KeyInfo{}, "", errs.New(errs.Conflict, "the user has %d API keys, and at most as many are allowed: revoke one first", len(keys))
	}
	if k.Expires.IsZero() {
		k.Expires = never
	}
	id, half := secret.Random(idSize), secret.New()
	key := record.Session{
		User: user.UUID, Proof: record.Proof{Provider: record.KeyType}, Name: k.Name, Rule: k.Rule, Expires: k.Expires,
		Address: from.Address, UserAgent: from.UserAgent, Hash: secret.Digest(half), Epoch: user.Epoch,
	}
	key.Publish(s.db.Audit(event.AuthKeyCreated, user.UUID, event.AuthDetails{Factor: id}))
	key, err = s.db.Sessions.Create(ctx, id, key)
	if err != nil {
		return KeyInfo{}, "", err
	}
	return keyInfo(key), id + half, nil
}

func keyInfo(key record.Session) KeyInfo {
	info := KeyInfo{ID: key.UUID, Name: key.Name, Rule: key.Rule, Created: key.Created, LastUsed: record.TimeText(key.LastUsed), Expires: record.TimeText(key.Expires)}
	if key.Expires.Equal(never) {
		info.Expires = ""
	}
	return info
}

// ListKeys returns the API keys of the user who is logged in, the oldest first.
func (s *Service) ListKeys(ctx context.Context, me *Session) ([]KeyInfo, error) {
	return s.keysOf(ctx, me.User)
}

// keysOf returns the valid API keys of a user, the oldest first.
func (s *Service) keysOf(ctx context.Context, user record.User) ([]KeyInfo, error) {
	list := []KeyInfo{}
	for session, err := range s.sessionsOf(ctx, user) {
		if err != nil {
			return list, err
		}
		if session.IsKey() {
			list = append(list, keyInfo(session))
		}
	}
	slices.SortFunc(list, func(a, b KeyInfo) int { return strings.Compare(a.Created+a.ID, b.Created+b.ID) })
	return list, nil
}

// RevokeKey ends an API key of the user who is logged in. NotFound when it is not theirs.
func (s *Service) RevokeKey(ctx context.Context, me *Session, id string) error {
	return s.revokeKey(record.AsService(ctx, me.User.UUID), me.User.UUID, id)
}

// EndKey ends an API key of a user on behalf of an admin, as the methods of manage.go.
func (s *Service) EndKey(ctx context.Context, user, id string) error {
	return s.revokeKey(record.Managing(ctx), user, id)
}

// keyOf returns the key that a session is; nil for that of a login.
func (s *Service) keyOf(session record.Session) *Key {
	if !session.IsKey() {
		return nil
	}
	k := &Key{Name: session.Name, open: session.Rule == ""}
	if !k.open {
		k.rule = s.rules.compiled(session.Rule)
	}
	return k
}

// maxCompiled is how many compiled rules of keys are kept.
const maxCompiled = 1000

// keyRules keeps the compiled rules of keys: compiling one takes far longer than a request.
type keyRules struct {
	mu  sync.Mutex
	all map[string]*policy.RequestRule
}

// compiled returns a compiled rule; nil, which never holds, for one that can't be compiled.
func (r *keyRules) compiled(expression string) *policy.RequestRule {
	r.mu.Lock()
	rule, known := r.all[expression]
	r.mu.Unlock()
	if known {
		return rule
	}
	rule, _ = policy.CompileRequestRule(expression) // nobody waits for it
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) >= maxCompiled || r.all == nil {
		r.all = map[string]*policy.RequestRule{}
	}
	r.all[expression] = rule
	return rule
}

// revokeKey ends an API key of a user. NotFound when it is not theirs.
func (s *Service) revokeKey(ctx context.Context, user, id string) error {
	key, err := s.sessionOf(ctx, user, id, true)
	if errors.Is(err, errs.NotFound) {
		return errs.New(errs.NotFound, "there is no API key with this id")
	}
	if err != nil {
		return err
	}
	if err := s.announce(ctx, record.UserOf(user), announcement{kind: NoticeKeyRemoved, about: key.Name, always: actsForOthers(ctx, user)}); err != nil {
		return err
	}
	return s.endSession(ctx, id, s.db.Audit(event.AuthKeyRevoked, user, event.AuthDetails{Factor: id}))
}
