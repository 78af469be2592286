package account

import (
	"context"
	"errors"
	"strings"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
)

// Overview is what users see of their own account on its page.
type Overview struct {
	HasPassword bool
	StepUp      StepUpOptions
	Factors     Factors
	Passkeys    []PasskeyInfo // nil where passkeys are not configured
	Sessions    []SessionInfo
	Addresses   []OwnAddress
	Deletion    *DeletionPlan // nil: none is planned
}

// OwnAddress is an e-mail address with which a user logs in.
type OwnAddress struct {
	Ident   string // its uuid
	Address string
}

// StepUpOptions are how a user can prove again who they are, with StepUp.
type StepUpOptions struct {
	Step     string   // which changes of what protects the account need first, as in errs.StepUp; "" for none
	Password bool     // by the password
	Factors  []string // by these types
}

// Overview returns the account of the user who is logged in.
func (s *Service) Overview(ctx context.Context, me *Session) (o Overview, err error) {
	if o.StepUp, err = s.stepUpOptions(ctx, me); err != nil {
		return o, err
	}
	o.HasPassword, o.Factors, o.Deletion = hasPassword(me), s.Factors(ctx, me), me.User.Plan()
	if o.Sessions, err = s.ListSessions(ctx, me); err != nil {
		return o, err
	}
	if s.PasskeysEnabled() {
		if o.Passkeys, err = s.ListPasskeys(ctx, me); err != nil {
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

func (s *Service) stepUpOptions(ctx context.Context, me *Session) (o StepUpOptions, err error) {
	var step *errs.StepUp
	if err := s.requireFresh(ctx, me); errors.As(err, &step) {
		o.Step = step.Step
	} else if err != nil {
		return o, err
	}
	o.Factors, o.Password, err = s.StepUpBy(ctx, me)
	return o, err
}
