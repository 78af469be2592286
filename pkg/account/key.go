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

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
)

// An API key is an object in the store of sessions, of the type keyType. It is found, hashed
// and ended as a session is: by its id, with its user, and with all sessions of its user.
// It differs in that use does not extend it, logins don't end it, and it can't manage the account.

// keyType is the type of sessions that are API keys.
const keyType = "key"

// Fields of an API key.
const (
	fieldName = "name"
	fieldRule = "rule"
)

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
	if err := s.takeAttempt(from); err != nil {
		return KeyInfo{}, "", err
	}
	if err := s.requireProof(ctx, me, password); err != nil {
		return KeyInfo{}, "", err
	}
	// A rule is compiled for those alone who have proven who they are.
	if err := s.validateKey(k); err != nil {
		s.returnAttempt(from)
		return KeyInfo{}, "", err
	}
	ctx = asService(ctx, me.User.UUID)
	if err := s.checkActive(ctx, me); err != nil {
		return KeyInfo{}, "", err
	}
	if err := s.announce(ctx, me.User, announcement{kind: NoticeKeyAdded, about: k.Name}); err != nil {
		return KeyInfo{}, "", err
	}
	info, token, err := s.saveKey(ctx, k, me.User, from)
	if err == nil {
		s.returnAttempt(from)
	}
	return info, token, err
}

// IssueKey makes an API key for a user on behalf of an admin, as the methods of manage.go.
func (s *Service) IssueKey(ctx context.Context, user store.Stored, k NewKey) (KeyInfo, string, error) {
	if err := s.validateKey(k); err != nil {
		return KeyInfo{}, "", err
	}
	if err := s.announce(managing(ctx), user, announcement{kind: NoticeKeyAdded, about: k.Name, always: true}); err != nil {
		return KeyInfo{}, "", err
	}
	return s.saveKey(managing(ctx), k, user, Client{})
}

// validateKey reports Invalid for a key that can't be made.
func (s *Service) validateKey(k NewKey) error {
	var found []errs.Field
	refuse := func(field, message string) {
		found = append(found, errs.Field{Pointer: "/" + field, Message: message})
	}
	if n := len(k.Name); n == 0 || n > maxKeyName || !utf8.ValidString(k.Name) || strings.ContainsFunc(k.Name, unicode.IsControl) || strings.TrimSpace(k.Name) != k.Name {
		refuse(fieldName, fmt.Sprintf("must have 1 to %d bytes, without control characters, or spaces at its ends", maxKeyName))
	}
	if !k.Expires.IsZero() && (!k.Expires.After(s.now()) || k.Expires.After(never)) {
		refuse(fieldExpires, "must be in the future")
	}
	if len(k.Rule) > maxKeyRule {
		refuse(fieldRule, fmt.Sprintf("must have at most %d bytes", maxKeyRule))
	} else if k.Rule != "" {
		_, problems := policy.CompileRequestRule(k.Rule)
		for _, p := range problems {
			refuse(fieldRule, fmt.Sprintf("at %d:%d: %s", p.Line, p.Column, p.Message))
		}
	}
	if found == nil {
		return nil
	}
	return &errs.Error{Kind: errs.Invalid, Message: "the API key can't be made", Fields: found}
}

func (s *Service) saveKey(ctx context.Context, k NewKey, user store.Stored, from Client) (KeyInfo, string, error) {
	o, err := user.Object()
	if err != nil {
		return KeyInfo{}, "", err
	}
	if isMarked(o, markDisabled) {
		return KeyInfo{}, "", errs.Wrap(ErrDisabled, errs.Denied, "the user is disabled: enable them first")
	}
	if planOf(o) != nil {
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
	id, secret := randomText(idSize), newSecret()
	key := object.Object{}
	key.Set(fieldUser, user.UUID)
	key.Set("type", keyType)
	key.Set(fieldName, k.Name)
	if k.Rule != "" {
		key.Set(fieldRule, k.Rule)
	}
	key.Set(fieldExpires, timestamp(k.Expires))
	key.Set("address", from.Address)
	key.Set("userAgent", from.UserAgent)
	key.Set("_hash", digest(secret))
	key.Set(fieldEpoch, epoch(o))
	stored, err := s.sessions.Save(ctx, key, id, s.audit(event.AuthKeyCreated, user.UUID, event.AuthDetails{Factor: id}))
	if err != nil {
		return KeyInfo{}, "", err
	}
	saved, err := stored.Object()
	return keyInfo(id, saved), id + secret, err
}

func keyInfo(id string, o object.Object) KeyInfo {
	text := func(name string) string { t, _ := o.Text(name); return t }
	info := KeyInfo{ID: id, Name: text(fieldName), Rule: text(fieldRule), Created: text("created"), LastUsed: text("lastUsed"), Expires: text(fieldExpires)}
	if info.Expires == timestamp(never) {
		info.Expires = ""
	}
	return info
}

// ListKeys returns the API keys of the user who is logged in, the oldest first.
func (s *Service) ListKeys(ctx context.Context, me *Session) ([]KeyInfo, error) {
	return s.keysOf(ctx, me.User)
}

// keysOf returns the valid API keys of a user, the oldest first.
func (s *Service) keysOf(ctx context.Context, user store.Stored) ([]KeyInfo, error) {
	list := []KeyInfo{}
	err := s.sessionsOf(ctx, user, func(stored store.Stored, o object.Object) error {
		if isKey(o) {
			list = append(list, keyInfo(stored.UUID, o))
		}
		return nil
	})
	slices.SortFunc(list, func(a, b KeyInfo) int { return strings.Compare(a.Created+a.ID, b.Created+b.ID) })
	return list, err
}

// isKey reports whether an object in the store of sessions is an API key.
func isKey(o object.Object) bool {
	t, _ := o.Text("type")
	return t == keyType
}

// RevokeKey ends an API key of the user who is logged in. NotFound when it is not theirs.
func (s *Service) RevokeKey(ctx context.Context, me *Session, id string) error {
	return s.revoke(asService(ctx, me.User.UUID), me.User.UUID, id, true)
}

// EndKey ends an API key of a user on behalf of an admin, as the methods of manage.go.
func (s *Service) EndKey(ctx context.Context, user, id string) error {
	return s.revoke(managing(ctx), user, id, true)
}

// keyOf returns the key that an object in the store of sessions is; nil for a session of a login.
func (s *Service) keyOf(o object.Object) *Key {
	if !isKey(o) {
		return nil
	}
	k := &Key{}
	k.Name, _ = o.Text(fieldName)
	expression, _ := o.Text(fieldRule)
	if k.open = expression == ""; !k.open {
		k.rule = s.rules.compiled(expression)
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

// revoke ends a session, or an API key, of a user. NotFound when it is not theirs.
func (s *Service) revoke(ctx context.Context, user, id string, key bool) error {
	missing := errs.New(errs.NotFound, "you have no session with this id")
	if key {
		missing = errs.New(errs.NotFound, "there is no API key with this id")
	}
	if !object.ValidUUID(id) {
		return missing
	}
	stored, err := s.sessions.Get(ctx, id)
	if errors.Is(err, errs.NotFound) {
		return missing
	}
	if err != nil {
		return err
	}
	o, err := stored.Object()
	if err != nil {
		return err
	}
	if owner, _ := o.Text(fieldUser); owner != user || isKey(o) != key {
		return missing
	}
	if !key {
		return s.endSession(ctx, id, s.auditEnd(user, id, reasonRevoked))
	}
	name, _ := o.Text(fieldName)
	if err := s.announce(ctx, store.Stored{UUID: user}, announcement{kind: NoticeKeyRemoved, about: name, always: actsForOthers(ctx, user)}); err != nil {
		return err
	}
	return s.endSession(ctx, id, s.audit(event.AuthKeyRevoked, user, event.AuthDetails{Factor: id}))
}
