package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/problem"
)

const (
	secondPath = Path + "/second-factor"

	// secondCookie holds the secret of a login at the console whose second factor is missing: another browser can't
	// complete it.
	secondCookie = "belfry-console-second"
)

// proofPage is the data of a page on which users authenticate. Its forms are sent to Action. Requests for the challenge
// or code of a method are sent to paths below it.
type proofPage struct {
	Action, Next, Submit string
	Password             bool
	Factors              []about.Method
	Mailed               bool // a code was sent
	Problem              string
}

// proof is the content of such a form.
type proof struct {
	method.Answer
	password, next string
}

func (r *request) proof() (proof, error) {
	values, err := r.Form()
	if err != nil {
		return proof{}, err
	}
	p := proof{method.Answer{Type: values.Get("type"), Code: values.Get("code")}, values.Get("password"),
		values.Get("next")}
	if r.console.service.Methods.About(p.Type).Script {
		p.Signed, err = r.console.sessions.TakeAnswer(r.Exchange, values.Get("credential"))
	}
	return p, err
}

// asked returns the page with the factors that it can request: those that are configured.
func (c *Console) asked(p proofPage, next string, factors []string) proofPage {
	if inConsole(next) {
		p.Next = next
	}
	for _, f := range factors {
		if m := c.service.Methods.Get(f); m != nil && m.Enabled() {
			p.Factors = append(p.Factors, m.About())
		}
	}
	return p
}

// Script reports whether the page needs the script.
func (p proofPage) Script() bool {
	return slices.ContainsFunc(p.Factors, func(m about.Method) bool { return m.Script })
}

// refused returns the page with the reason why a proof was refused, and the status of the reply. The status is 0 for
// errors that are not about the proof.
func (p proofPage) refused(r *request, err error) (proofPage, int) {
	switch kind := errs.KindOf(err); kind {
	case errs.Invalid, errs.Denied, errs.Conflict, errs.Limited:
		if kind == errs.Limited {
			r.SetHeader("Retry-After", problem.RetryAfter(err))
		}
		p.Problem, _ = messageOf(err)
		r.RecordError(err)
		return p, problem.Of(kind).Status
	}
	return p, 0
}

// sentTo returns the page that the browser is redirected to after a code was mailed.
func sentTo(path, next string) string {
	query := url.Values{"mail": {"sent"}}
	if inConsole(next) {
		query.Set("next", next)
	}
	return path + "?" + query.Encode()
}

// askSecond redirects to the page that completes a login.
func (c *Console) askSecond(r *request, p *logins.PendingLogin, next string) {
	c.sessions.SetCookie(r.Exchange, secondCookie, p.Secret, int(logins.PendingTTL.Seconds()))
	r.seeOther(withNext(secondPath, next))
}

func (c *Console) secondPage(r *request) error {
	return c.showSecond(r, r.Query("next"), r.Query("mail") == "sent", nil)
}

// showSecond shows the page that completes a login, with the reason why the last try failed. If the login has to start
// again, it shows the login page.
func (c *Console) showSecond(r *request, next string, mailed bool, failed error) error {
	err := failed
	var factors []string
	if !errors.Is(failed, errs.Unauthenticated) {
		factors, err = c.service.Login.PendingFactors(r.Context(), c.pending(r))
	}
	if err != nil {
		if kind := errs.KindOf(err); kind == errs.Unauthenticated || kind == errs.Denied {
			c.forgetSecond(r)
		}
		return r.failLogin(c.form(next), err)
	}
	p := c.asked(proofPage{Action: secondPath, Submit: "Log in", Mailed: mailed}, next, factors)
	status := http.StatusOK
	if failed != nil {
		if p, status = p.refused(r, failed); status == 0 {
			return failed
		}
	}
	return r.page(status, "second", "Second factor", p)
}

// pending is the secret of the login that waits for its second factor, "" for none.
func (c *Console) pending(r *request) string {
	return c.service.Login.PendingSecret(r.Context(), c.sessions.Cookie(r.Exchange, secondCookie))
}

func (c *Console) forgetSecond(r *request) { r.removeCookie(secondCookie) }

// completeLogin completes a login with a second factor.
func (c *Console) completeLogin(r *request) error {
	f, err := r.proof()
	if err != nil {
		return err
	}
	var session sessions.Issued
	_, _, err = c.calls.Write(r.Exchange, func(ctx context.Context) (err error) {
		session, err = c.service.Login.CompleteLogin(ctx, c.pending(r), f.Answer, r.client())
		return err
	})
	if err != nil {
		return c.showSecond(r, f.next, c.service.Methods.About(f.Type).Sent(), err)
	}
	c.forgetSecond(r)
	c.sessions.Issue(r.Exchange, session)
	r.seeOther(c.form(f.next).target())
	return nil
}

// ask is the route below a path by which a method is started: it mails a code, or returns a challenge to the script. If
// pending, it is for the login that waits for its second factor; otherwise for the session.
func (c *Console) ask(m about.Method, path string, pending bool,
	show func(r *request, next string, mailed bool, failed error) error) route {
	handle := func(r *request) error {
		from, secret := r.client(), ""
		if pending {
			from.Session, secret = nil, c.pending(r)
		}
		var f proof
		var err error
		if !m.Script {
			if f, err = r.proof(); err != nil {
				return err
			}
		}
		challenge, err := c.service.Login.Ask(r.Context(), m.Name, secret, from)
		switch {
		case m.Script && err == nil:
			return c.sessions.SendChallenge(r.Exchange, challenge)
		case m.Script:
			return err
		case err != nil:
			return show(r, f.next, false, err)
		}
		r.seeOther(sentTo(path, f.next))
		return nil
	}
	rt := post(strings.TrimPrefix(path, Path)+"/"+m.Asked, handle)
	if m.Script {
		rt = forScript(rt)
	}
	return rt
}
