package policy

import (
	"context"

	"belfry/pkg/errs"
)

// missingStep returns the step of the user that makes a denying rule hold, nil if no step does. It evaluates
// the rule with the sessions that they could have.
func (p *Policy) missingStep(ctx context.Context, r *rule, op Op, in Input) (*errs.StepUp, error) {
	now := in.Session
	// A list leaves objects out.
	if !r.session || now == nil || in.User == nil || !now.StepUp || op == List && in.Object != nil {
		return nil, nil
	}
	for _, try := range []struct {
		session Session
		step    errs.StepUp
	}{
		{Session{AAL: now.AAL, AuthenticatedAt: in.Now}, errs.StepUp{Step: errs.StepReauthenticate}},
		{Session{AAL: 2, AuthenticatedAt: in.Now}, errs.StepUp{Step: errs.StepSecondFactor, AAL: 2}},
	} {
		in.Session, in.UserValues = &try.session, nil
		denial, err := p.evaluate(ctx, r, op, in)
		if err != nil {
			return nil, err
		}
		if denial == nil {
			return &try.step, nil
		}
	}
	return nil, nil
}

// stepUp returns the error of an operation that is denied until the user takes a step.
func stepUp(op Op, step *errs.StepUp, cause *Denial, err error) error {
	if err != nil {
		return err
	}
	message := "prove again who you are to %s this: the store's policy demands a more recent login"
	if step.Step == errs.StepSecondFactor {
		message = "log in with a second factor to %s this: the store's policy demands it"
	}
	e := errs.New(errs.Unauthenticated, message, op)
	e.Err = &deniedStep{step, cause}
	return e
}

// deniedStep is the cause of a denial that a step resolves.
type deniedStep struct {
	*errs.StepUp
	denial *Denial
}

// Unwrap makes both findable.
func (d *deniedStep) Unwrap() []error { return []error{d.StepUp, d.denial} }
