package account

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

const (
	recoveryCodes    = 10
	recoveryCodeSize = 10 // random bytes: 80 bits, so that a plain hash can't be inverted by search
)

var base32Code = base32.StdEncoding.WithPadding(base32.NoPadding)

// newRecoveryCodes makes recovery codes of a user, such as ABCD-EFGH-IJKL-MNOP, and what is stored of them.
func newRecoveryCodes(user string) (codes, digests []string) {
	for range recoveryCodes {
		raw := make([]byte, recoveryCodeSize)
		_, _ = rand.Read(raw) // never fails
		text := base32Code.EncodeToString(raw)
		codes = append(codes, strings.Join([]string{text[:4], text[4:8], text[8:12], text[12:]}, "-"))
		digests = append(digests, recoveryDigest(user, text))
	}
	return codes, digests
}

// renewCodes replaces the recovery codes of a user, and returns the new ones.
func (f *factors) renewCodes(user string) (codes []string) {
	codes, f.Recovery = newRecoveryCodes(user)
	return codes
}

// recoveryDigest is what is stored of a code. Each user has other digests of the same code.
func recoveryDigest(user, code string) string { return digest(user + " " + code) }

// normalizeRecoveryCode returns a code as it was made, however somebody has typed it.
func normalizeRecoveryCode(text string) string {
	return strings.ToUpper(typedCode(text))
}

// useRecoveryCode consumes a recovery code of a user, and reports whether it was one. Of two that use it at once, one
// does.
func (s *Service) useRecoveryCode(ctx context.Context, user store.Stored, code string) (ok bool, err error) {
	given := normalizeRecoveryCode(code)
	_, err = s.users.Mutate(asService(ctx, user.UUID), user.UUID, func(now store.Stored) (store.Mutation, error) {
		ok = false
		if !sameEpoch(now, user) {
			return store.Mutation{}, errSessionEnded()
		}
		f := factorsOf(now.Body)
		i := slices.IndexFunc(f.Recovery, func(stored string) bool { return secretMatches(user.UUID+" "+given, stored) })
		if i < 0 {
			return store.Mutation{}, nil
		}
		ok = true
		f.Recovery = slices.Delete(f.Recovery, i, i+1)
		return store.Mutation{Fields: f.fields()}, nil
	})
	return ok, err
}

// RenewRecoveryCodes replaces the recovery codes of the user who is logged in, and returns the new ones, which are stored
// nowhere. Conflict without a second factor.
func (s *Service) RenewRecoveryCodes(ctx context.Context, me *Session) (codes []string, err error) {
	if err := s.requireFresh(ctx, me); err != nil {
		return nil, err
	}
	none := errs.New(errs.Conflict, "recovery codes take the place of a second factor: add one first")
	if !factorsOf(me.User.Body).any() {
		return nil, none
	}
	if err := s.announce(asService(ctx, me.User.UUID), me.User, announcement{kind: NoticeRecoveryCodes}); err != nil {
		return nil, err
	}
	at := timestamp(s.now())
	err = s.changeFactors(ctx, me, func(_ store.Stored, f *factors) (store.ExtraEvent, error) {
		if !f.any() {
			return nil, none
		}
		codes, f.RecoveryCreated = f.renewCodes(me.User.UUID), at
		return s.audit(event.AuthRecoveryCodes, me.User.UUID, event.AuthDetails{Session: me.ID}), nil
	})
	if err != nil {
		return nil, err
	}
	return codes, nil
}
