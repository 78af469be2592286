package account

import (
	"context"
	"errors"
	"strings"

	"belfry/pkg/account/flow/deletion"
	"belfry/pkg/account/flow/enrollment"
	"belfry/pkg/account/method/passkeys"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// Overview is the data of a user's own account on its page.
type Overview struct {
	HasPassword bool
	StepUp      StepUpOptions
	Factors     enrollment.Factors
	Passkeys    []passkeys.Info // nil if passkeys are not configured
	Sessions    []sessions.Info
	Addresses   []OwnAddress
	Deletion    *deletion.Plan // nil: none is planned
}

// OwnAddress is an e-mail address with which a user logs in.
type OwnAddress struct {
	Ident   string // its uuid
	Address string
}

// StepUpOptions are the methods by which a user can authenticate again, with StepUp.
type StepUpOptions struct {
	// the step that is needed before changes of the account's protection, as in errs.StepUp; "" for none
	Step     string
	Password bool     // by the password
	Factors  []string // by these types
}

// Overview returns the account of the logged-in user.
func (s *Service) Overview(ctx context.Context, me *sessions.Session) (o Overview, err error) {
	if o.StepUp, err = s.stepUpOptions(ctx, me); err != nil {
		return o, err
	}
	o.HasPassword, o.Factors, o.Deletion = sessions.HasPassword(me), s.Enrollment.Factors(ctx, me), me.User.Plan()
	if o.Sessions, err = s.Sessions.List(ctx, me); err != nil {
		return o, err
	}
	if s.Passkeys.Enabled() {
		if o.Passkeys, err = s.Passkeys.List(ctx, me); err != nil {
			return o, err
		}
	}
	for ident, err := range s.db.Idents.Owned(record.AsService(ctx, me.User.UUID), me.User.UUID) {
		if err != nil {
			return o, err
		}
		if address, ok := strings.CutSuffix(ident.UUID, "_email"); ok {
			o.Addresses = append(o.Addresses, OwnAddress{ident.UUID, address})
		}
	}
	return o, nil
}

func (s *Service) stepUpOptions(ctx context.Context, me *sessions.Session) (o StepUpOptions, err error) {
	var step *errs.StepUp
	if err := s.Sessions.RequireFresh(ctx, me); errors.As(err, &step) {
		o.Step = step.Step
	} else if err != nil {
		return o, err
	}
	o.Factors, o.Password, err = s.StepUp.StepUpBy(ctx, me)
	return o, err
}
