package console

import (
	"errors"
	"net/http"

	"belfry/pkg/errs"
)

const stepUpPath = Path + "/step-up"

// askStep redirects an admin to the page for a missing step, and from there back. An admin without a required second
// factor sees a page that says so instead.
func (r *request) askStep(step string) error {
	switch {
	case r.keeps && step != errs.StepEnroll:
		return r.keep(withNext(stepUpPath, r.shownPage()), "You have to prove again who you are.", "Prove it")
	case step != errs.StepEnroll:
		r.seeOther(withNext(stepUpPath, r.shownPage()))
		return nil
	case r.Partial():
		r.seeOther(Path)
		return nil
	default:
		return r.page(http.StatusUnauthorized, "enroll", "A second factor is required", r.console.account)
	}
}

// stepUpPage shows the page on which an admin authenticates again.
func (c *Console) stepUpPage(r *request) error {
	return c.showStepUp(r, r.Query("next"), r.Query("mail") == "sent", nil)
}

// showStepUp shows the page with the reason why the last try failed.
func (c *Console) showStepUp(r *request, next string, mailed bool, failed error) error {
	if errors.Is(failed, errs.Unauthenticated) { // the session has ended meanwhile
		r.Session, r.admin = nil, false
		return r.failLogin(c.form(next), failed)
	}
	factors, password, err := c.service.StepUp.StepUpBy(r.Context(), r.Session)
	if err != nil {
		return err
	}
	p := c.asked(proofPage{Action: stepUpPath, Submit: "Continue", Mailed: mailed, Password: password}, next, factors)
	status := http.StatusOK
	if failed != nil {
		if p, status = p.refused(r, failed); status == 0 {
			return failed
		}
	}
	return r.page(status, "step_up", "Prove who you are", p)
}

// stepUp authenticates an admin again. The session is replaced, and with it the cookie.
func (c *Console) stepUp(r *request) error {
	f, err := r.proof()
	if err != nil {
		return err
	}
	session, err := c.service.StepUp.StepUp(r.Context(), f.password, f.Answer, r.client())
	if err != nil {
		return c.showStepUp(r, f.next, c.service.Methods.About(f.Type).Sent(), err)
	}
	c.sessions.Issue(r.Exchange, session)
	return r.Redirect(c.form(f.next).target(), "You have proven who you are. Now repeat your action.")
}
