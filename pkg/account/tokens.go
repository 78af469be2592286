package account

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/account/oauth"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// Fields of an ident whose provider keeps tokens.
const (
	fieldTokens = "_tokens"  // sealed for the ident
	fieldLease  = "_refresh" // who is refreshing them, and until when others wait
)

const (
	// maxTokens is the most bytes of tokens that are kept. Those of the known providers have at most some thousand.
	maxTokens = 16 << 10

	// expiryMargin is how long an access token is valid at least when it is returned.
	expiryMargin = time.Minute

	// leaseTTL is how long a refresh may take until others take it to be lost. It is longer than refreshTimeout, so that
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

// storedTokens is what is sealed.
type storedTokens struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
	Scope   string    `json:"scope,omitempty"`
}

// purposeOf binds sealed tokens to their ident: in another one they can't be opened.
func purposeOf(ident string) string { return "provider tokens of " + ident }

// setTokens sets the tokens of an identity in the fields of its ident, or removes those of before where the
// provider does not keep them any more. A provider that issues a refresh token at the first consent alone returns none
// later: then the one of before stays.
func (s *Service) setTokens(fields object.Object, stored store.Stored, id identity) {
	if id.tokens == nil || s.sealer == nil {
		if object.Field(stored.Body, fieldTokens) != nil {
			fields[fieldTokens], fields[fieldLease] = nil, nil
		}
		return
	}
	tokens := storedTokens(*id.tokens)
	if before, _, ok := s.tokensOf(id.uuid(), stored.Body); ok && tokens.Refresh == "" {
		tokens.Refresh = before.Refresh
	}
	if sealed, ok := s.sealTokens(id.uuid(), tokens); ok {
		fields.Set(fieldTokens, sealed)
	}
}

// sealTokens encrypts tokens for an ident. Tokens that are too large are not kept.
func (s *Service) sealTokens(ident string, tokens storedTokens) (sealed string, ok bool) {
	content, err := json.Marshal(tokens)
	if err != nil || len(content) > maxTokens {
		s.log.Warn("auth: the tokens of a provider are too large to be kept", slog.String("ident", ident), slog.Int("bytes", len(content)))
		return "", false
	}
	return s.sealer.Seal(purposeOf(ident), content), true
}

// tokensOf returns the tokens in an ident, and as what they are stored.
func (s *Service) tokensOf(ident string, body []byte) (tokens storedTokens, sealed string, ok bool) {
	if sealed, ok = object.Text(object.Field(body, fieldTokens)); !ok || s.sealer == nil {
		return tokens, "", false
	}
	content, ok := s.sealer.Open(purposeOf(ident), sealed)
	if !ok {
		return tokens, sealed, false // the key is gone
	}
	return tokens, sealed, json.Unmarshal(content, &tokens) == nil
}

// errNoToken does not say why: whether an ident exists is nobody's business but its user's.
func errNoToken() error {
	return errs.New(errs.NotFound, "you have no ident with this uuid whose provider's tokens are kept and valid: log in through the provider again")
}

// ProviderToken returns an access token of an ident of the user who is logged in. One that has expired, or is about to, is
// refreshed, by one process at a time; others wait for it.
//
// Errors: NotFound when the ident is not theirs, or has no token that the provider accepts; Denied for an API key;
// Unauthenticated when the session has ended meanwhile, and those of RequireComplete; Unavailable when the provider is; Internal when it refuses belfry.
func (s *Service) ProviderToken(ctx context.Context, me *Session, ident string) (ProviderToken, error) {
	if err := errors.Join(RequireLogin(me), RequireComplete(me)); err != nil {
		return ProviderToken{}, err
	}
	if !object.ValidUUID(ident) {
		return ProviderToken{}, errNoToken()
	}
	// Each of many that wait for a provider that hangs would otherwise wait for all before it.
	waiting, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	wait, refreshed := backoff.New(50*time.Millisecond, time.Second), false
	for {
		step, err := s.lease(ctx, me, ident, refreshed)
		switch {
		case err != nil:
			return ProviderToken{}, err
		case step.valid && (refreshed || wait.Failed() > 0):
			return step.token(), s.checkActive(asService(ctx, me.User.UUID), me)
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

// leaseStep is what an ident has at a moment.
type leaseStep struct {
	keeper oauth.Keeper
	tokens storedTokens
	sealed string
	valid  bool   // the access token is
	leased bool   // it is not, and this caller is to refresh it
	holder string // of the lease
}

func (l leaseStep) token() ProviderToken {
	return ProviderToken{AccessToken: l.tokens.Access, Expires: l.tokens.Expires, Scope: l.tokens.Scope}
}

// refreshLease is the content of fieldLease.
type refreshLease struct {
	Holder string    `json:"holder"`
	Until  time.Time `json:"until"`
}

func leaseOf(body []byte) (l refreshLease) {
	_ = json.Unmarshal(object.Field(body, fieldLease), &l) // none, if it is not valid
	return l
}

// lease returns a valid token of an ident, or takes the lease to refresh it. With neither, somebody else is refreshing. The
// record is read and written at one revision, so that one caller at most has the lease. Tokens of an earlier key are
// sealed with the present one. After a refresh whatever is stored is valid: a provider that issues tokens for less than
// expiryMargin is not asked for ever.
func (s *Service) lease(ctx context.Context, me *Session, ident string, refreshed bool) (step leaseStep, err error) {
	_, err = s.idents.Mutate(asService(ctx, me.User.UUID), ident, func(stored store.Stored) (store.Mutation, error) {
		var err error
		if step, err = s.readTokens(me, stored); err != nil {
			return store.Mutation{}, err
		}
		now, fields := s.now(), object.Object{}
		expires := step.tokens.Expires
		held := leaseOf(stored.Body)
		pending := held.Holder != "" && now.Before(held.Until)
		switch {
		case refreshed || expires.IsZero() || now.Before(expires.Add(-expiryMargin)):
			step.valid = true
		case step.tokens.Refresh == "" && now.Before(expires):
			step.valid = true // there will be no other
		case step.tokens.Refresh == "":
			return store.Mutation{}, errNoToken()
		case pending:
			return store.Mutation{}, nil
		default:
			step.leased, step.holder = true, newSecret()
			fields.Set(fieldLease, refreshLease{Holder: step.holder, Until: now.Add(leaseTTL)})
		}
		if !pending && !s.sealer.Current(purposeOf(ident), step.sealed) {
			if sealed, ok := s.sealTokens(ident, step.tokens); ok {
				fields.Set(fieldTokens, sealed)
				step.sealed = sealed
			}
		}
		return store.Mutation{Fields: fields}, nil
	})
	if ignoreNotFound(err) == nil && err != nil {
		err = errNoToken()
	}
	return step, err
}

// readTokens returns the tokens of an ident of a user; errNoToken for none, and those that can't be used.
func (s *Service) readTokens(me *Session, ident store.Stored) (leaseStep, error) {
	owner, _ := object.Text(object.Field(ident.Body, fieldUser))
	provider, _ := object.Text(object.Field(ident.Body, "type"))
	keeper, keeps := s.providers[provider].(oauth.Keeper)
	if owner != me.User.UUID || unlinkedOf(me.User.Body)[ident.UUID] >= ident.Revision || !keeps || !keeper.KeepsTokens() {
		return leaseStep{}, errNoToken()
	}
	tokens, sealed, ok := s.tokensOf(ident.UUID, ident.Body)
	if !ok {
		return leaseStep{}, errNoToken()
	}
	return leaseStep{keeper: keeper, tokens: tokens, sealed: sealed}, nil
}

// refresh requests new tokens and stores them, also if the client disconnects: a refresh token that the provider has replaced is
// lost unless the next one is stored.
func (s *Service) refresh(ctx context.Context, me *Session, ident string, step leaseStep) error {
	done := make(chan error, 1)
	work, cancel := context.WithTimeout(context.WithoutCancel(asService(ctx, me.User.UUID)), refreshTimeout)
	s.pending.Go(func() {
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
func (s *Service) refreshLeased(ctx context.Context, ident string, step leaseStep) error {
	got, failure := step.keeper.Refresh(ctx, step.tokens.Refresh)
	refused := errs.KindOf(failure) == errs.Denied
	_, err := s.idents.Mutate(ctx, ident, func(stored store.Stored) (store.Mutation, error) {
		fields := object.Object{}
		if leaseOf(stored.Body).Holder == step.holder {
			fields[fieldLease] = nil
		}
		// A login stores other tokens, and so does who takes the lease when it has expired: these are newer, or another user's.
		if now, sealed, ok := s.tokensOf(ident, stored.Body); sealed != step.sealed && (!ok || now.Refresh != step.tokens.Refresh) {
			return store.Mutation{Fields: fields}, nil
		}
		switch {
		case failure == nil:
			sealed, ok := s.sealTokens(ident, storedTokens(got))
			if !ok {
				fields[fieldTokens] = nil
				break
			}
			fields.Set(fieldTokens, sealed)
		case refused:
			fields[fieldTokens] = nil
		}
		return store.Mutation{Fields: fields}, nil
	})
	switch {
	case ignoreNotFound(err) != nil:
		return err
	case failure == nil || refused:
		return nil // what is stored says it
	case errs.KindOf(failure) == errs.Internal, errs.KindOf(failure) == errs.Unavailable:
		return failure
	default:
		return errs.New(errs.Unavailable, "the provider did not return a token; try again later")
	}
}
