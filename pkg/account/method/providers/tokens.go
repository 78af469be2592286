package providers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/account/oauth"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

const (
	// maxTokens is the maximum size of kept tokens. Tokens of the known providers have at most some thousand bytes.
	maxTokens = 16 << 10

	// expiryMargin is the minimal remaining validity of a returned access token.
	expiryMargin = time.Minute

	// leaseTTL is how long a refresh may take until others consider it lost. It is longer than refreshTimeout, so that
	// the clocks of two processes may differ by the rest.
	leaseTTL       = time.Minute
	refreshTimeout = 30 * time.Second
)

// ProviderToken is an access token for the data of a user at a provider.
type ProviderToken struct {
	AccessToken string
	Expires     time.Time // zero: never, or not known
	Scope       string    // separated by spaces
}

// storedTokens are the tokens that are sealed.
type storedTokens struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	Scope   string    `json:"scope,omitempty"`
}

// purposeOf binds sealed tokens to their ident: in another one they can't be opened.
func purposeOf(ident string) string { return "provider tokens of " + ident }

// setTokens sets the tokens of an identity in the fields of its ident, or removes the previous ones if the provider no
// longer keeps tokens. A provider that issues a refresh token only at the first consent returns none later: then the
// previous one stays.
func (s *Method) setTokens(i *record.Ident, uuid string, got *oauth.Tokens) {
	if got == nil || s.Sealer == nil {
		if i.Tokens != "" {
			i.Tokens, i.Lease = "", record.Lease{}
		}
		return
	}
	tokens := storedTokens(*got)
	if before, ok := s.tokensOf(uuid, *i); ok && tokens.Refresh == "" {
		tokens.Refresh = before.Refresh
	}
	if sealed, ok := s.sealTokens(uuid, tokens); ok {
		i.Tokens = sealed
	}
}

// sealTokens encrypts tokens for an ident. Tokens that are too large are not kept.
func (s *Method) sealTokens(ident string, tokens storedTokens) (sealed string, ok bool) {
	content, err := json.Marshal(tokens)
	if err != nil || len(content) > maxTokens {
		s.Log.Warn("auth: the tokens of a provider are too large to be kept", slog.String("ident", ident),
			slog.Int("bytes", len(content)))
		return "", false
	}
	return s.Sealer.Seal(purposeOf(ident), content), true
}

// tokensOf returns the tokens in an ident.
func (s *Method) tokensOf(uuid string, i record.Ident) (tokens storedTokens, ok bool) {
	if i.Tokens == "" || s.Sealer == nil {
		return tokens, false
	}
	content, ok := s.Sealer.Open(purposeOf(uuid), i.Tokens)
	if !ok {
		return tokens, false // the key no longer exists
	}
	return tokens, json.Unmarshal(content, &tokens) == nil
}

// errNoToken does not have the reason: only the user of an ident may learn whether it exists.
func errNoToken() error {
	return errs.New(errs.NotFound,
		"you have no ident with this uuid whose provider's tokens are kept and valid: log in through the "+
			"provider again")
}

// ProviderToken returns an access token of an ident of the logged-in user. It refreshes a token that has expired, or is
// about to, in one process at a time; others wait for it.
//
// Errors:
//
//   - NotFound: the ident is not the user's, or has no token that the provider accepts
//   - Denied: for an API key
//   - Unauthenticated: the session has ended, and the errors of RequireComplete
//   - Unavailable: the provider can't be reached
//   - Internal: the provider refuses belfry
func (s *Method) ProviderToken(ctx context.Context, me *sessions.Session, ident string) (ProviderToken, error) {
	if err := errors.Join(sessions.RequireLogin(me), sessions.RequireComplete(me)); err != nil {
		return ProviderToken{}, err
	}
	if !object.ValidUUID(ident) {
		return ProviderToken{}, errNoToken()
	}
	// Otherwise each of many requests for a hanging provider would wait for all earlier ones.
	waiting, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	wait, refreshed := backoff.New(50*time.Millisecond, time.Second), false
	for {
		step, err := s.lease(ctx, me, ident, refreshed)
		switch {
		case err != nil:
			return ProviderToken{}, err
		case step.valid && (refreshed || wait.Failed() > 0):
			return step.token(), s.Sessions.CheckActive(record.AsService(ctx, me.User.UUID), me)
		case step.valid:
			return step.token(), nil
		case step.leased:
			refreshed = true
			err = s.refresh(ctx, me, ident, step)
		default:
			err = wait.Wait(waiting)
			if err != nil && ctx.Err() == nil {
				err = errs.New(errs.Unavailable, "the token is being refreshed; try again later")
			}
		}
		if err != nil {
			return ProviderToken{}, err
		}
	}
}

// refreshLease is the lease to refresh the tokens of an ident.
func refreshLease(i *record.Ident) store.Lease {
	return store.Lease{Holder: &i.Lease.Holder, Until: &i.Lease.Until, Lasts: leaseTTL}
}

// leaseStep is the state of an ident's tokens at a moment.
type leaseStep struct {
	keeper oauth.Keeper
	tokens storedTokens
	sealed string
	valid  bool   // the access token is valid
	leased bool   // the token is not valid, and this caller has to refresh it
	holder string // of the lease
}

func (l leaseStep) token() ProviderToken {
	return ProviderToken{AccessToken: l.tokens.Access, Expires: l.tokens.Expires, Scope: l.tokens.Scope}
}

// lease returns a valid token of an ident, or takes the lease to refresh it. With neither, another caller is
// refreshing. The record is read and written at one revision, so that at most one caller has the lease. Tokens of an
// earlier key are sealed with the present one. After a refresh, any stored token is valid: otherwise tokens that expire
// within expiryMargin would be refreshed forever.
func (s *Method) lease(ctx context.Context, me *sessions.Session, ident string,
	refreshed bool) (step leaseStep, err error) {
	_, err = s.DB.Idents.Change(record.AsService(ctx, me.User.UUID), ident, func(i *record.Ident) error {
		var err error
		if step, err = s.readTokens(me, *i); err != nil {
			return err
		}
		changed, now := false, s.DB.Now()
		expires := step.tokens.Expires
		held := refreshLease(i)
		pending := held.Held(now)
		switch {
		case refreshed || expires.IsZero() || now.Before(expires.Add(-expiryMargin)):
			step.valid = true
		case step.tokens.Refresh == "" && now.Before(expires):
			step.valid = true // there will be no other
		case step.tokens.Refresh == "":
			return errNoToken()
		case pending:
			return record.ErrUnchanged
		default:
			step.holder = secret.New()
			step.leased, changed = held.Claim(step.holder, now), true
		}
		if !pending && !s.Sealer.Current(purposeOf(ident), step.sealed) {
			if sealed, ok := s.sealTokens(ident, step.tokens); ok {
				i.Tokens, changed = sealed, true
				step.sealed = sealed
			}
		}
		if !changed {
			return record.ErrUnchanged
		}
		return nil
	})
	if record.IgnoreNotFound(err) == nil && err != nil {
		err = errNoToken()
	}
	return step, err
}

// readTokens returns the tokens of an ident of a user; errNoToken for none, and those that can't be used.
func (s *Method) readTokens(me *sessions.Session, ident record.Ident) (leaseStep, error) {
	keeper, keeps := s.Providers[ident.Type].(oauth.Keeper)
	if ident.User != me.User.UUID || me.User.Unlinked[ident.UUID] >= ident.Revision || !keeps || !keeper.KeepsTokens() {
		return leaseStep{}, errNoToken()
	}
	tokens, ok := s.tokensOf(ident.UUID, ident)
	if !ok {
		return leaseStep{}, errNoToken()
	}
	return leaseStep{keeper: keeper, tokens: tokens, sealed: ident.Tokens}, nil
}

// refresh requests new tokens and stores them, also if the client disconnects: a refresh token that the provider has
// replaced is lost unless the next one is stored.
func (s *Method) refresh(ctx context.Context, me *sessions.Session, ident string, step leaseStep) error {
	done := make(chan error, 1)
	work, cancel := context.WithTimeout(context.WithoutCancel(record.AsService(ctx, me.User.UUID)), refreshTimeout)
	s.Pending.Go(func() {
		defer cancel()
		done <- s.refreshLeased(work, ident, step)
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errs.Wrap(ctx.Err(), errs.Canceled, "the request ended while the token was being refreshed")
	}
}

// refreshLeased refreshes tokens with a lease, which it ends.
func (s *Method) refreshLeased(ctx context.Context, ident string, step leaseStep) error {
	got, failure := step.keeper.Refresh(ctx, step.tokens.Refresh)
	refused := errs.KindOf(failure) == errs.Denied
	_, err := s.DB.Idents.Change(ctx, ident, func(i *record.Ident) error {
		changed := refreshLease(i).Release(step.holder)
		// A login stores other tokens, and so does a process that takes an expired lease: these are newer, or another
		// user's.
		if now, ok := s.tokensOf(ident, *i); i.Tokens == step.sealed || ok && now.Refresh == step.tokens.Refresh {
			switch {
			case failure == nil:
				i.Tokens, _ = s.sealTokens(ident, storedTokens(got))
				changed = true
			case refused:
				i.Tokens, changed = "", true
			}
		}
		if !changed {
			return record.ErrUnchanged
		}
		return nil
	})
	switch {
	case record.IgnoreNotFound(err) != nil:
		return err
	case failure == nil || refused:
		return nil // the stored record has the result
	case errs.KindOf(failure) == errs.Internal, errs.KindOf(failure) == errs.Unavailable:
		return failure
	default:
		return errs.New(errs.Unavailable, "the provider did not return a token; try again later")
	}
}
