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

	"belfry/pkg/account/guess"
	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
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

// About describes the method.
func (s *Method) About() about.Method {
	return about.Method{
		Name: record.MethodTOTP, Title: "Authenticator app", Factor: true,
		Texts: about.Texts{
			Add: "Add an authenticator app", Setup: "Scan the picture with your app, or type the secret into it. Then enter the code that it shows.",
			SetupCode: "Code of the app", SetupAdd: "Add the app",
			Answer: "Code of your authenticator app", Confirm: "Code of the app that you have set up", Field: "code", Digits: true,
		},
		API: about.API{
			Begin: about.Operation{
				ID: "beginTOTP", Summary: "Set up an authenticator app",
				Description: "It is of no use before its confirmation by the same session, within 10 minutes. An HTML form, which can't PUT or DELETE, confirms it with `code`, and removes it with `remove`; the reply is 303, or a page that shows the secret or the recovery codes.",
			},
			Put: about.Operation{
				ID: "confirmTOTP", Summary: "Confirm an authenticator app",
				Description: "The session is replaced by one with the second factor. Recovery codes are in the reply if there were none.",
			},
			Code: "Six digits that the app shows.",
		},
	}
}

// Enabled implements method.Method.
func (s *Method) Enabled() bool { return true }

// Allow implements method.Factor.
func (s *Method) Allow(*sessions.Session) error { return nil }

// Setup makes the secret of an authenticator app for the user who is logged in. It replaces one that the same session has begun.
// Errors: Conflict.
func (s *Method) Setup(ctx context.Context, me *sessions.Session) (method.Setup, error) {
	account, err := s.Users.Address(ctx, me.User.UUID)
	if err != nil {
		return method.Setup{}, err
	}
	if account = strings.ReplaceAll(account, ":", "_"); account == "" {
		account = me.User.UUID
	}
	key, err := totp.Generate(totp.GenerateOpts{Issuer: s.issuer(), AccountName: account, Period: uint(totpPeriod / time.Second)})
	if err != nil {
		return method.Setup{}, errs.Wrap(err, errs.Internal, "a secret for an authenticator app can't be made")
	}
	image, err := key.Image(totpQRSize, totpQRSize)
	if err != nil {
		return method.Setup{}, errs.Wrap(err, errs.Internal, "the QR code can't be made")
	}
	var picture bytes.Buffer
	if err := png.Encode(&picture, image); err != nil {
		return method.Setup{}, errs.Wrap(err, errs.Internal, "the QR code can't be made")
	}
	ctx = record.AsService(ctx, me.User.UUID)
	if err := record.IgnoreNotFound(s.DB.Tokens.Store.Delete(ctx, method.SetupUUID(me.ID), 0)); err != nil {
		return method.Setup{}, err
	}
	_, err = s.DB.Tokens.Create(ctx, method.SetupUUID(me.ID), record.Token{
		Setup: secret.Seal(s.Sealer, record.FactorTOTP+me.User.UUID, key.Secret()), Expires: s.DB.Now().Add(enrollTTL),
	})
	if errors.Is(err, errs.Exists) {
		err = errs.New(errs.Conflict, "the same session is setting up an authenticator app: try again")
	}
	return method.Setup{Secret: key.Secret(), URI: key.URL(), PNG: picture.Bytes()}, err
}

// issuer is what authenticator apps show beside the account: the host of belfry.
func (s *Method) issuer() string {
	u, err := url.Parse(s.Base.String())
	if err != nil || u.Hostname() == "" {
		return "belfry"
	}
	return u.Hostname()
}

// Enroll verifies a code of the authenticator app that the session has set up. Errors: Conflict when nothing is being set up; those of try.
func (s *Method) Enroll(ctx context.Context, me *sessions.Session, code string, try method.Try) (added method.Enrolled, err error) {
	own := record.AsService(ctx, me.User.UUID)
	nothing := errs.New(errs.Conflict, "no authenticator app is being set up in this session, or it took too long: begin again")
	pending, err := s.DB.Tokens.Read(own, method.SetupUUID(me.ID))
	if errors.Is(err, errs.NotFound) {
		return added, nothing
	}
	if err != nil {
		return added, err
	}
	if !s.DB.Now().Before(pending.Expires) {
		return added, nothing
	}
	key, err := secret.Open(s.Sealer, record.FactorTOTP+me.User.UUID, pending.Setup)
	if err != nil {
		return added, err
	}
	if err := try(func(context.Context) (uint64, bool, error) {
		step, ok := matchTOTP(key, code, s.DB.Now())
		return step, ok, nil
	}); err != nil {
		return added, err
	}
	if err := s.DB.Tokens.Store.Delete(own, pending.UUID, pending.Revision); err != nil {
		if record.IgnoreStale(err) == nil {
			err = nothing // another request has confirmed it, or begun again
		}
		return added, err
	}
	added.Factor = record.Factor{Type: record.FactorTOTP, Secret: pending.Setup}
	return added, nil
}

// Prove implements method.Method: the code is that of a user's authenticator app.
func (s *Method) Prove(_ context.Context, user record.User, a method.Answer, _ string) (step uint64, ok bool, err error) {
	f, has := user.Factors.Get(record.FactorTOTP)
	if !has {
		return 0, false, nil
	}
	key, err := secret.Open(s.Sealer, record.FactorTOTP+user.UUID, f.Secret)
	if err != nil {
		return 0, false, err
	}
	step, ok = matchTOTP(key, a.Code, s.DB.Now())
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
