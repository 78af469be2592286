package recoverycodes

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"slices"
	"strings"

	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
)

const (
	recoveryCodes    = 10
	recoveryCodeSize = 10 // random bytes: 80 bits, so that a plain hash can't be inverted by search
)

var base32Code = base32.StdEncoding.WithPadding(base32.NoPadding)

// newRecoveryCodes makes recovery codes of a user, such as ABCD-EFGH-IJKL-MNOP, and their stored form.
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

// Renew replaces the recovery codes of a user, and returns the new ones.
func Renew(user *record.User) (codes []string) {
	codes, user.Factors.Recovery = newRecoveryCodes(user.UUID)
	return codes
}

// recoveryDigest is the stored form of a code. Each user has other digests of the same code.
func recoveryDigest(user, code string) string { return secret.Digest(user + " " + code) }

// normalizeRecoveryCode returns the canonical form of a typed code.
func normalizeRecoveryCode(text string) string {
	return strings.ToUpper(secret.TypedCode(text))
}

// Use consumes a recovery code of a user, and reports whether it was one. Of two concurrent uses, one succeeds.
func (s *Method) Use(ctx context.Context, user record.User, code string) (ok bool, err error) {
	given := normalizeRecoveryCode(code)
	_, err = s.DB.Users.Change(record.AsService(ctx, user.UUID), user.UUID, func(now *record.User) error {
		ok = false
		if !now.SameEpoch(user) {
			return sessions.EndedError()
		}
		i := slices.IndexFunc(now.Factors.Recovery, func(stored string) bool {
			return secret.Matches(user.UUID+" "+
				given, stored)
		})
		if i < 0 {
			return record.ErrUnchanged
		}
		ok = true
		now.Factors.Recovery = slices.Delete(now.Factors.Recovery, i, i+1)
		return nil
	})
	return ok, err
}

// About describes the method.
func (s *Method) About() about.Method {
	return about.Method{
		Name: record.FactorRecovery, Title: "recovery code", Spare: true,
		Texts: about.Texts{Answer: "Recovery code", Add: "Use a recovery code", Hint: "Each works once."},
	}
}

// Enabled implements method.Method.
func (s *Method) Enabled() bool { return true }

// Prove implements method.Method.
func (s *Method) Prove(ctx context.Context, user record.User, a method.Answer,
	_ string) (step uint64, ok bool, err error) {
	ok, err = s.Use(ctx, user, a.Code)
	return 0, ok, err
}
