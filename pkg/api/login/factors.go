package login

import (
	"encoding/base64"
	"errors"
	"net/http"

	"belfry/pkg/account"
	"belfry/pkg/account/method/about"
	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
)

// factors lists the second factors of the user who is logged in.
func (h *Handler) factors(x *kit.Exchange) error {
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	x.SetHeader("Cache-Control", kit.NoStore)
	return x.SendJSON(h.service.Enrollment.Factors(x.Context(), session))
}

// changeFactor begins to add a second factor. A form adds it as well, by a code if it needs one, or removes it.
func (h *Handler) changeFactor(x *kit.Exchange, m about.Method) error {
	switch {
	case h.isForm(x):
		return h.changeFactorForm(x, m)
	case m.Once:
		return h.confirmFactor(x, m)
	}
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	s, err := h.service.Enrollment.Begin(x.Context(), session, m.Name)
	if err != nil {
		return err
	}
	if s.Secret == "" {
		return x.SendStatus(http.StatusAccepted)
	}
	x.SetHeader("Cache-Control", kit.NoStore)
	return x.SendJSON(setup{Secret: s.Secret, URI: s.URI, QR: qrURL(s.PNG)})
}

// setup is what a second factor needs that is being added.
type setup struct {
	Secret string `json:"secret"`
	URI    string `json:"uri"`
	QR     string `json:"qr"` // a data URL of a PNG, "" for none
}

func qrURL(png []byte) string {
	if len(png) == 0 {
		return ""
	}
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(png)
}

// added is the reply to a new second factor. The codes are shown once.
type added struct {
	RecoveryCodes []string `json:"recoveryCodes,omitempty"`
	*issued
}

// confirmFactor adds a second factor, by a code if it needs one.
func (h *Handler) confirmFactor(x *kit.Exchange, m about.Method) error {
	code := ""
	if !m.Once {
		f, err := readForm(x)
		if err != nil {
			return err
		}
		if code, err = f.takeOne("code"); err != nil {
			return err
		}
	}
	if _, err := h.requireLogin(x); err != nil {
		return err
	}
	s, codes, err := h.addFactor(x, m, code)
	if err != nil {
		return err
	}
	x.SetHeader("Cache-Control", kit.NoStore)
	if s.Token == "" { // the session stays
		return x.SendJSON(added{RecoveryCodes: codes})
	}
	h.cookies.setSession(x, s)
	representation, err := h.issuedIfPreferred(x, s)
	if err != nil {
		return err
	}
	return x.SendJSON(added{codes, representation})
}

func (h *Handler) addFactor(x *kit.Exchange, m about.Method, code string) (account.IssuedSession, []string, error) {
	client, err := h.client(x)
	if err != nil {
		return account.IssuedSession{}, nil, err
	}
	return h.service.Enrollment.Confirm(x.Context(), m.Name, code, client)
}

// changeFactorForm is changeFactor for an HTML form, which also confirms and removes. After a wrong code the form for the code is shown
// again: the app has the secret already.
func (h *Handler) changeFactorForm(x *kit.Exchange, m about.Method) error {
	return h.accountForm(x, func(me *account.Session, f form) error {
		remove, err := f.takeBool("remove")
		_, confirm := f.Object["code"]
		switch {
		case err != nil:
			return err
		case remove:
			return h.doneOr(x, "factor-removed", h.service.Enrollment.Remove(x.Context(), me, m.Name))
		case !confirm && !m.Once:
			s, err := h.service.Enrollment.Begin(x.Context(), me, m.Name)
			if err = unlessMailed(m.Sent(), err); err != nil {
				return err
			}
			if s.Secret == "" {
				redirect(x, http.StatusSeeOther, withQuery(h.account, setupParameter, m.Name))
				return nil
			}
			return h.showAccount(x, me, AccountReply{Method: m, Secret: s.Secret, QR: qrURL(s.PNG)})
		}
		code, err := f.takeOne("code")
		if err != nil {
			return err
		}
		session, codes, err := h.addFactor(x, m, code)
		if !m.Once && (errors.Is(err, errs.Denied) || errors.Is(err, errs.Limited)) {
			return h.redirectAccountFailure(x, withQuery(h.account, setupParameter, m.Name), err)
		}
		if err != nil {
			return err
		}
		h.cookies.setSession(x, session)
		return h.showCodes(x, &session.Session, "factor-added", codes)
	})
}

// renewRecoveryCodes replaces the recovery codes of the user who is logged in.
func (h *Handler) renewRecoveryCodes(x *kit.Exchange) error {
	if h.isForm(x) {
		return h.accountForm(x, func(me *account.Session, _ form) error {
			codes, err := h.service.Enrollment.RenewRecoveryCodes(x.Context(), me)
			if err != nil {
				return err
			}
			return h.showCodes(x, me, "", codes)
		})
	}
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	codes, err := h.service.Enrollment.RenewRecoveryCodes(x.Context(), session)
	if err != nil {
		return err
	}
	x.SetHeader("Cache-Control", kit.NoStore)
	return x.SendJSON(added{RecoveryCodes: codes})
}

func (h *Handler) removeFactor(x *kit.Exchange, kind string) error {
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	if err := h.service.Enrollment.Remove(x.Context(), session, kind); err != nil {
		return err
	}
	return x.SendStatus(http.StatusNoContent)
}
