package totp

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"image/png"
	"net/url"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"belfry/pkg/account/flow/enrollment"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

const (
	totpPeriod = guess.Step
	totpQRSize = 256

	// enrollTTL is how long somebody has to set up an authenticator app.
	enrollTTL = 10 * time.Minute
)

// Setup is what an authenticator app needs. It is shown once.
type Setup struct {
	Secret string // in base32, to be typed
	URI    string // otpauth://totp/…
	PNG    []byte // the URI as a QR code
}

// Begin makes the secret of an authenticator app for the user who is logged in. It is of no use before
// Confirm, and replaces one that the same session has begun. Errors: those of RequireFresh; Exists; Conflict.
func (s *Method) Begin(ctx context.Context, me *sessions.Session) (Setup, error) {
	if err := s.Enrollment.RequireEnrollable(ctx, me, record.FactorTOTP); err != nil {
		return Setup{}, err
	}
	account, err := s.Users.Address(ctx, me.User.UUID)
	if err != nil {
		return Setup{}, err
	}
	if account = strings.ReplaceAll(account, ":", "_"); account == "" {
		account = me.User.UUID
	}
	key, err := totp.Generate(totp.GenerateOpts{Issuer: s.issuer(), AccountName: account, Period: uint(totpPeriod / time.Second)})
	if err != nil {
		return Setup{}, errs.Wrap(err, errs.Internal, "a secret for an authenticator app can't be made")
	}
	image, err := key.Image(totpQRSize, totpQRSize)
	if err != nil {
		return Setup{}, errs.Wrap(err, errs.Internal, "the QR code can't be made")
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, image); err != nil {
		return Setup{}, errs.Wrap(err, errs.Internal, "the QR code can't be made")
	}
	ctx = record.AsService(ctx, me.User.UUID)
	if err := record.IgnoreNotFound(s.DB.Tokens.Store.Delete(ctx, enrollment.SetupUUID(me.ID), 0)); err != nil {
		return Setup{}, err
	}
	_, err = s.DB.Tokens.Create(ctx, enrollment.SetupUUID(me.ID), record.Token{
		Setup: secret.Seal(s.Sealer, record.FactorTOTP+me.User.UUID, key.Secret()), Expires: s.DB.Now().Add(enrollTTL),
	})
	if errors.Is(err, errs.Exists) {
		err = errs.New(errs.Conflict, "the same session is setting up an authenticator app: try again")
	}
	return Setup{Secret: key.Secret(), URI: key.URL(), PNG: picture.Bytes()}, err
}

// issuer is what authenticator apps show beside the account: the host of belfry.
func (s *Method) issuer() string {
	u, err := url.Parse(s.Base.String())
	if err != nil || u.Hostname() == "" {
		return "belfry"
	}
	return u.Hostname()
}

// Confirm adds the authenticator app that the session has set up, by a code of it. The session is replaced by one with the
// second factor. With the first factor there are recovery codes, which are shown once. A limited session stays, and the app counts
// after EnrollDelay.
//
// Errors: those of RequireFresh; Denied for a wrong code; Conflict when nothing is being set up; Exists; Limited.
func (s *Method) Confirm(ctx context.Context, code string, from sessions.Client) (session sessions.Issued, codes []string, err error) {
	me := from.Session
	if err := s.Enrollment.RequireEnrollable(ctx, me, record.FactorTOTP); err != nil {
		return session, nil, err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return session, nil, err
	}
	own := record.AsService(ctx, me.User.UUID)
	nothing := errs.New(errs.Conflict, "no authenticator app is being set up in this session, or it took too long: begin again")
	pending, err := s.DB.Tokens.Read(own, enrollment.SetupUUID(me.ID))
	if errors.Is(err, errs.NotFound) {
		return session, nil, nothing
	}
	if err != nil {
		return session, nil, err
	}
	if !s.DB.Now().Before(pending.Expires) {
		return session, nil, nothing
	}
	key, err := secret.Open(s.Sealer, record.FactorTOTP+me.User.UUID, pending.Setup)
	if err != nil {
		return session, nil, err
	}
	if err := s.Guesses.Code(ctx, me.User.UUID, record.MethodTOTP, func(context.Context) (uint64, bool, error) {
		step, ok := matchTOTP(key, code, s.DB.Now())
		return step, ok, nil
	}); err != nil {
		return session, nil, err
	}
	if err := s.DB.Tokens.Store.Delete(own, pending.UUID, pending.Revision); err != nil {
		if record.IgnoreStale(err) == nil {
			err = nothing // another request has confirmed it, or begun again
		}
		return session, nil, err
	}
	codes, err = s.Enrollment.Add(ctx, me, record.Factor{Type: record.FactorTOTP, Secret: pending.Setup}, nil)
	if err != nil {
		return session, nil, err
	}
	s.Guesses.Return(from.Address)
	if me.Limited {
		return sessions.Issued{Session: *me}, nil, nil // it counts after EnrollDelay
	}
	session, err = s.Sessions.Raise(ctx, record.MethodTOTP, from)
	return session, codes, err
}

// Verify reports whether a code is that of a user's authenticator app, and its time step.
func (s *Method) Verify(user record.User, code string) (step uint64, ok bool, err error) {
	f, has := user.Factors.Get(record.FactorTOTP)
	if !has {
		return 0, false, nil
	}
	key, err := secret.Open(s.Sealer, record.FactorTOTP+user.UUID, f.Secret)
	if err != nil {
		return 0, false, err
	}
	step, ok = matchTOTP(key, code, s.DB.Now())
	return step, ok, nil
}

// matchTOTP finds the time step of a code, within the skew. It compares with all of them, so that the time that it takes says
// nothing about the code.
func matchTOTP(key, code string, now time.Time) (step uint64, ok bool) {
	code = secret.TypedCode(code)
	for skew := -guess.StepSkew; skew <= guess.StepSkew; skew++ {
		at := now.Add(time.Duration(skew) * totpPeriod)
		want, err := totp.GenerateCodeCustom(key, at, totp.ValidateOpts{Period: uint(totpPeriod / time.Second), Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
		if err == nil && subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 {
			step, ok = guess.StepAt(at), true
		}
	}
	return step, ok
}
