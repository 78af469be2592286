package account

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mail"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// mailLogin is a login by mail in progress. It is bound to the browser, or the pending login, that asked for it: the
// code alone, which has six digits, is of no use. That is also why a plain hash of it is enough.
type mailLogin struct {
	Binding string `json:"binding"`      // digest of the secret that has to come with the code
	Method  string `json:"method"`       // MethodCode or MethodLink
	To      string `json:"to,omitempty"` // the address, where the mailbox is that of a user
	Mail    string `json:"mail"`         // id of the mailRequest
	Until   string `json:"until"`
	Hash    string `json:"hash,omitempty"`  // of the code, or of the token of the link; "" until the mail is composed
	Tries   int    `json:"tries,omitempty"` // wrong codes

	// The account that it is for, "" for none. It is of no use once the user has another epoch.
	User  string `json:"user,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`
}

// fieldMailLogins holds the logins by mail of a mailbox.
const fieldMailLogins = "_logins"

const (
	// maxTries is how many wrong codes there may be for one that was mailed, and for one login whose second factor is missing.
	maxTries = 5

	// maxMailLogins is how many logins by mail of one address can be in progress.
	maxMailLogins = 16
)

func mailLoginsOf(body []byte) (all []mailLogin) {
	_ = json.Unmarshal(object.Field(body, fieldMailLogins), &all)
	return all
}

// mailLoginFor returns the login whose mail a request is for.
func mailLoginFor(body []byte, request string) (mailLogin, bool) {
	all := mailLoginsOf(body)
	i := slices.IndexFunc(all, func(l mailLogin) bool { return l.Mail == request })
	if i < 0 {
		return mailLogin{}, false
	}
	return all[i], true
}

func (l *mailLogin) bind(user store.Stored) error {
	o, err := user.Object()
	if err != nil {
		return err
	}
	l.User, l.Epoch = user.UUID, epoch(o)
	return nil
}

// isFor reports whether a login is for an account, as it is now.
func (l mailLogin) isFor(user store.Stored) bool {
	o, err := user.Object()
	return err == nil && user.UUID != "" && l.User == user.UUID && l.Epoch == epoch(o) && !isMarked(o, markDisabled)
}

func (l mailLogin) valid(now time.Time) bool { return timestamp(now) < l.Until && l.Tries < maxTries }

// hash is what is stored of a code.
func (l mailLogin) hash(code string) string { return digest(l.Binding + ":" + code) }

func (l mailLogin) matches(code string) bool {
	if l.Method == MethodLink {
		code = typedToken(code)
	} else {
		code = typedCode(code)
	}
	return l.User != "" && secretMatches(l.Binding+":"+code, l.Hash)
}

// addMailLogin returns the field of a mailbox to which a login is added. It replaces the one that has the binding
// replaced, so that a client has one login in progress for an address.
func (s *Service) addMailLogin(l mailLogin, replaced string) func([]byte, mailRequest) object.Object {
	return func(body []byte, request mailRequest) object.Object {
		l.Mail = request.ID
		all := slices.DeleteFunc(mailLoginsOf(body), func(other mailLogin) bool {
			return other.Binding == replaced || !other.valid(s.now())
		})
		all = append(all, l)
		fields := object.Object{}
		fields.Set(fieldMailLogins, all[max(0, len(all)-maxMailLogins):])
		return fields
	}
}

// orderLogin requests the mail of a login. ErrMailAsked is the cause of its error only where the mail that is on its way is for whoever
// has the binding replaced: to others it is of no use.
func (s *Service) orderLogin(ctx context.Context, o mailOrder, asked mailLogin, replaced string) error {
	o.with = s.addMailLogin(asked, replaced)
	err := s.orderMail(ctx, o)
	if !errors.Is(err, ErrMailAsked) {
		return err
	}
	mailbox, failed := s.tokens.Get(ctx, o.mailbox)
	if failed != nil {
		return failed
	}
	request, _ := mailRequestOf(object.Field(mailbox.Body, fieldMail))
	if l, ok := mailLoginFor(mailbox.Body, request.ID); ok && l.Binding == replaced && l.Method == asked.Method && l.valid(s.now()) {
		return err
	}
	return askedByOthers(err)
}

// tryMailLogin compares a code with that of the login that has a binding, and uses the login up if it is right. The
// write of the mailbox's record counts a wrong code, so that the tries are those of all processes together: against
// the login, which ends after maxTries of them, and against the mailbox, which has to wait after
// Limits.Account of them, longer after each further one, so that it is of no use to ask for mail after mail. As
// many reads and writes are made for a login that is for nobody. A code that was used is no try: its error has a Repetition.
func (s *Service) tryMailLogin(ctx context.Context, mailbox, binding, code string, act Act, from Client) (login mailLogin, right bool, err error) {
	_, err = s.tokens.Mutate(ctx, mailbox, func(stored store.Stored) (store.Mutation, error) {
		login, right = mailLogin{}, false
		now, all := s.now(), mailLoginsOf(stored.Body)
		at := slices.IndexFunc(all, func(l mailLogin) bool { return l.Binding == binding && l.valid(now) })
		if at < 0 || !all[at].matches(code) {
			if r := s.repeatedLogin(stored.Body, binding, code, from); r != nil {
				return store.Mutation{}, errRepeated(*r, errs.Denied)
			}
		}
		if at < 0 {
			return store.Mutation{}, nil
		}
		failed := failuresOf(stored)
		if wait := failed.wait(s.limits.Account, now); wait > 0 && s.limits.Account > 0 {
			return store.Mutation{}, errLimited("too many wrong codes", wait)
		}
		m := store.Mutation{Fields: object.Object{}}
		login, right = all[at], all[at].matches(code)
		if right {
			all, failed = slices.Delete(all, at, at+1), failures{At: now}
			s.setUsed(m.Fields, stored.Body, usedSecret{Hash: login.Hash, For: purpose(login.Method), Act: act, Browser: browserDigest(from), Binding: login.Binding})
		} else {
			all[at].Tries++
			failed = failures{Count: failed.unexpired(now).Count + 1, At: now}
			if login.User != "" {
				m.ExtraEvents = []store.ExtraEvent{s.audit(event.AuthLoginFailed, login.User, event.AuthDetails{Method: login.Method, Reason: "code"})}
			}
		}
		m.Fields.Set(fieldMailLogins, all)
		m.Fields[fieldFailures] = failed.encode()
		return m, nil
	})
	return login, right, ignoreNotFound(err)
}

// newCode returns six random digits.
func newCode() string {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		panic(err) // rand.Reader never fails
	}
	return fmt.Sprintf("%06d", n)
}

// errNoLogin ends the change of a mailbox whose login has ended since it was read.
var errNoLogin = errors.New("auth: the login by mail has ended")

// composeLogin makes the code of a login by mail, or the token of its link, stores its hash, and renders the mail. No mail
// is sent for a login that is for nobody, or that has expired. A mail that is sent again has another code.
func (s *Service) composeLogin(ctx context.Context, mailbox store.Stored, login mailLogin) (m mail.Message, send bool, err error) {
	secret := newCode()
	if login.Method == MethodLink {
		secret = newSecret()
	}
	_, err = s.tokens.Mutate(ctx, mailbox.UUID, func(now store.Stored) (store.Mutation, error) {
		all := mailLoginsOf(now.Body)
		at := slices.IndexFunc(all, func(l mailLogin) bool { return l.Mail == login.Mail && l.valid(s.now()) })
		if at < 0 {
			return store.Mutation{}, errNoLogin
		}
		all[at].Hash = all[at].hash(secret)
		fields := object.Object{}
		fields.Set(fieldMailLogins, all)
		return store.Mutation{Fields: fields}, nil
	})
	if errors.Is(err, errNoLogin) || errors.Is(err, errs.NotFound) {
		return m, false, nil
	}
	if err != nil || login.User == "" {
		return m, false, err
	}
	address, _ := object.Text(object.Field(mailbox.Body, fieldLogin))
	data, texts := mail.Data{Login: address, Token: secret, Link: s.BaseURL()}, s.email.Login.CodeMail
	if login.Method == MethodLink {
		data.Link, texts = s.mailLink(address, secret), s.email.Login.LinkMail
	}
	m, err = s.render(texts, login.Mail, data)
	return m, err == nil, err
}
