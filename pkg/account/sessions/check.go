package sessions

import (
	"context"
	"errors"
	"slices"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// freshFor is how long after a login its user may change the account's protection.
const freshFor = 10 * time.Minute

// RequireFresh returns an Unauthenticated error with an errs.StepUp unless the user of a session has proven their
// identity recently, with the second factor if they have one. Every change of an account's protection requires it: a
// stolen session must not become a permanent login. Denied for an API key.
//
// If a second factor is required, a session of a user without one can only add one.
func (s *Sessions) RequireFresh(ctx context.Context, me *Session) error {
	if err := s.RequireFreshToEnroll(ctx, me); err != nil {
		return err
	}
	return RequireComplete(me)
}

// RequireFreshToEnroll is RequireFresh for adding a second factor.
func (s *Sessions) RequireFreshToEnroll(ctx context.Context, me *Session) error {
	if err := RequireLogin(me); err != nil {
		return err
	}
	if !me.Limited {
		if err := s.RequireSecond(ctx, me); err != nil {
			return err
		}
	}
	if age := s.DB.Now().Sub(me.AuthenticatedAt); age > freshFor || age < -record.ClockTolerance {
		return errs.NeedsStepUp(errs.StepUp{Step: errs.StepReauthenticate, MaxAge: freshFor},
			"prove again who you are: your login is too old for this")
	}
	return nil
}

// RequireSecond returns an Unauthenticated error with an errs.StepUp for a session without the second factor that its
// user has.
func (s *Sessions) RequireSecond(ctx context.Context, me *Session) error {
	if me.AAL < 2 && s.AsksForSecond(ctx, me) {
		return errs.NeedsStepUp(errs.StepUp{Step: errs.StepSecondFactor, AAL: 2, MaxAge: freshFor},
			"prove your second factor first: your login was without it")
	}
	return nil
}

// AsksForSecond reports whether a login of the user would need a second factor.
func (s *Sessions) AsksForSecond(ctx context.Context, me *Session) bool {
	return me.User.Factors.Any() && s.PolicyOf(ctx, me.Visible) != MFAOff
}

// missingStep returns the step that the configuration requires before a session can be used; "" for none. The user of
// an API key has taken it before creating the key.
func (s *Sessions) missingStep(ctx context.Context, me *Session) string {
	switch {
	case me.Limited && s.AsksForSecond(ctx, me):
		return errs.StepEnroll
	case me.Key != nil || me.AAL >= 2 || s.PolicyOf(ctx, me.Visible) != MFARequired:
		return ""
	case me.User.Factors.Any():
		return errs.StepSecondFactor
	default:
		return errs.StepEnroll
	}
}

// RequireComplete returns an Unauthenticated error with an errs.StepUp for a session whose user first has to take a
// step.
func RequireComplete(me *Session) error {
	if me == nil || me.Missing == "" {
		return nil
	}
	message := "a second factor is required here: prove yours first"
	switch {
	case me.Limited:
		message = "your second factor can't be used after a login by a mail, or by a password that was set by one: " +
			"log in by another method, use a recovery code, or add another second factor, which counts a day later"
	case me.Missing == errs.StepEnroll:
		message = "a second factor is required here: add one to your account first"
	}
	return errs.NeedsStepUp(errs.StepUp{Step: me.Missing, AAL: 2}, "%s", message)
}

// Raise replaces the session of a client by one whose user has just proven their identity by a method.
func (s *Sessions) Raise(ctx context.Context, method string, from Client) (Issued, error) {
	me := from.Session
	if err := s.CheckActive(record.AsService(ctx, me.User.UUID), me); err != nil {
		return Issued{}, err
	}
	user, err := s.DB.Users.Read(record.AsService(ctx, me.User.UUID), me.User.UUID)
	if errors.Is(err, errs.NotFound) || err == nil && !user.SameEpoch(me.User) {
		err = EndedError()
	}
	if err != nil {
		return Issued{}, err
	}
	p := me.Proof()
	if !slices.Contains(p.Methods, method) {
		p.Methods = append(slices.Clone(p.Methods), method)
	}
	if method != record.MethodPassword {
		p.AAL = 2
	}
	p.At, p.Again, p.Limited = s.DB.Now(), true, false
	if err := s.PasswordKnown(ctx, user, p.Methods); err != nil {
		return Issued{}, err
	}
	return s.Replace(ctx, user, p, from)
}

// Policies of second factors.
const (
	MFAOff      = "off"      // second factors are not used
	MFAOptional = "optional" // users who have one must prove it
	MFARequired = "required" // users without one must add one
)

// MFA configures which users need a second factor. The zero value is MFAOptional.
type MFA struct {
	Policy   string           // "" is MFAOptional
	Required *policy.UserRule // users who need one under any policy; nil: nobody
}

// of returns the policy for a user as rules see them.
func (m MFA) of(ctx context.Context, user object.Object) string {
	switch {
	case m.Required.Holds(ctx, user):
		return MFARequired
	case m.Policy == "":
		return MFAOptional
	default:
		return m.Policy
	}
}

// PolicyOf returns the policy for a user as rules see them.
func (s *Sessions) PolicyOf(ctx context.Context, user object.Object) string {
	return s.MFA.of(ctx, user)
}

// RequireTexts returns Invalid for empty fields of a form. names and values alternate.
func RequireTexts(message string, fields ...string) error {
	var missing []errs.Field
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i+1] == "" {
			missing = append(missing, errs.Field{Pointer: object.Pointer(fields[i]), Message: "is missing"})
		}
	}
	if missing == nil {
		return nil
	}
	return &errs.Error{Kind: errs.Invalid, Message: message, Fields: missing}
}

// StateError is returned for a callback without a flow of this browser.
func StateError() error {
	return errs.New(errs.Mismatch, "this login was started in another browser, is finished, or took too long")
}
