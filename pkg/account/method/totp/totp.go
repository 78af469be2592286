package totp

import (
	"bytes"
	"context"
	"crypto/subtle"
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
)

// About describes the method.
func (s *Method) About() about.Method {
	return about.Method{
		Name: record.MethodTOTP, Title: "Authenticator app", Factor: true, Secret: true,
		Texts: about.Texts{
			Add:       "Add an authenticator app",
			Setup:     "Scan the picture with your app, or type the secret into it. Then enter the code that it shows.",
			SetupCode: "Code of the app", SetupAdd: "Add the app",
			Answer: "Code of your authenticator app", Confirm: "Code of the app that you have set up", Field: "code",
			Digits: true,
		},
		API: about.API{
			Begin: about.Operation{
				ID: "beginTOTP", Summary: "Set up an authenticator app",
				Description: "The same session has to confirm it within 10 minutes. An HTML form, which can't PUT or " +
					"DELETE, confirms it with `code`, and removes it with `remove`; the reply is 303, or a page that " +
					"shows the secret or the recovery codes.",
			},
			Put: about.Operation{
				ID: "confirmTOTP", Summary: "Confirm an authenticator app",
				Description: "The session is replaced by one with the second factor. With the first factor, the " +
					"reply has recovery codes.",
			},
			Code: "The six digits that the app shows.",
		},
	}
}

// Enabled implements method.Method.
func (s *Method) Enabled() bool { return true }

// Allow implements method.Factor.
func (s *Method) Allow(*sessions.Session) error { return nil }

// Setup makes the secret of an authenticator app for the logged-in user.
func (s *Method) Setup(ctx context.Context, me *sessions.Session) (method.Setup, error) {
	account, err := s.Users.Address(ctx, me.User.UUID)
	if err != nil {
		return method.Setup{}, err
	}
	if account = strings.ReplaceAll(account, ":", "_"); account == "" {
		account = me.User.UUID
	}
	key, err := totp.Generate(totp.GenerateOpts{Issuer: s.issuer(), AccountName: account,
		Period: uint(totpPeriod / time.Second)})
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
	return method.Setup{Secret: key.Secret(), URI: key.URL(), PNG: picture.Bytes()}, nil
}

// issuer is shown by authenticator apps beside the account: the name of the application, or the host of belfry. A colon
// would end it.
func (s *Method) issuer() string {
	if s.Name != "" {
		return strings.ReplaceAll(s.Name, ":", " ")
	}
	u, err := url.Parse(s.Base.String())
	if err != nil || u.Hostname() == "" {
		return "belfry"
	}
	return u.Hostname()
}

// Enroll implements method.Factor.
func (s *Method) Enroll(_ context.Context, _ *sessions.Session, secret, code string,
	try method.Try) (check func(now record.User) error, err error) {
	return nil, try(func(context.Context) (uint64, bool, error) {
		step, ok := matchTOTP(secret, code, s.DB.Now())
		return step, ok, nil
	})
}

// Prove implements method.Method: the code is that of a user's authenticator app.
func (s *Method) Prove(_ context.Context, user record.User, a method.Answer,
	_ string) (step uint64, ok bool, err error) {
	key, ok, err := method.SecretOf(s.Sealer, user, record.FactorTOTP)
	if !ok || err != nil {
		return 0, false, err
	}
	step, ok = matchTOTP(key, a.Code, s.DB.Now())
	return step, ok, nil
}

// matchTOTP finds the time step of a code, within the skew. It compares with all steps, so that its duration reveals
// nothing about the code.
func matchTOTP(key, code string, now time.Time) (step uint64, ok bool) {
	code = secret.TypedCode(code)
	for skew := -guess.StepSkew; skew <= guess.StepSkew; skew++ {
		at := now.Add(time.Duration(skew) * totpPeriod)
		want, err := totp.GenerateCodeCustom(key,
			at, totp.ValidateOpts{Period: uint(totpPeriod / time.Second), Digits: otp.DigitsSix,
				Algorithm: otp.AlgorithmSHA1})
		if err == nil && subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 {
			step, ok = guess.StepAt(at), true
		}
	}
	return step, ok
}
