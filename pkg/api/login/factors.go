package login

import (
	"encoding/base64"
	"errors"
	"net/http"

	"belfry/pkg/account/method/about"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

// factorForm is the HTML form that adds a second factor, by a code if it needs one, or removes it, since forms can
// neither PUT nor DELETE.
type factorForm struct {
	op.Input
	Code   *string `form:"code,html"`
	Remove bool    `form:"remove,html" doc:"Remove the factor."`
}

type factorCode struct {
	op.Input
	Code string `form:"code,required"`
}

// factors lists the logged-in user's second factors.
func (h secondFactors) factors(x *httpkit.Exchange, me *sessions.Session) (op.Outcome, error) {
	return op.Outcome{Body: h.service.Enrollment.Factors(x.Context(), me)}, nil
}

// setup is the data for adding a second factor.
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

// changeFactor begins to add a second factor, and adds one that needs no code. A form adds it by a code as well, or
// removes it.
func (h secondFactors) changeFactor(x *httpkit.Exchange, me *sessions.Session, m about.Method,
	in factorForm) (op.Outcome, error) {
	switch {
	case in.Remove:
		return h.ofAccount("factor-removed"), h.service.Enrollment.Remove(x.Context(), me, m.Name)
	case m.Once:
		return h.confirmFactor(x, me, m, factorCode{Input: in.Input})
	case in.Code != nil:
		return h.confirmFactor(x, me, m, factorCode{in.Input, *in.Code})
	}
	s, err := h.service.Enrollment.Begin(x.Context(), me, m.Name)
	if err = unlessMailed(in.HTML && m.Sent(), err); err != nil {
		return op.Outcome{}, err
	}
	if s.Secret == "" {
		return op.Outcome{Status: http.StatusAccepted, To: withQuery(h.AccountRedirect, setupParameter, m.Name)}, nil
	}
	shown := setup{Secret: s.Secret, URI: s.URI, QR: qrURL(s.PNG)}
	return op.Outcome{Body: shown, Page: h.show(me, AccountReply{Method: m, Secret: shown.Secret, QR: shown.QR})}, nil
}

// confirmFactor adds a second factor, by a code if it needs one. After a wrong code the form for the code is shown
// again: the app already has the secret.
func (h secondFactors) confirmFactor(x *httpkit.Exchange, _ *sessions.Session, m about.Method,
	in factorCode) (op.Outcome, error) {
	client, err := h.client(x)
	if err != nil {
		return op.Outcome{}, err
	}
	s, codes, err := h.service.Enrollment.Confirm(x.Context(), m.Name, in.Code, client)
	if !m.Once && (errors.Is(err, errs.Denied) || errors.Is(err, errs.Limited)) {
		return op.Outcome{Failed: withQuery(h.AccountRedirect, setupParameter, m.Name)}, err
	}
	if err != nil {
		return op.Outcome{}, err
	}
	reply := added{RecoveryCodes: codes}
	if s.Token != "" { // else the session stays
		h.cookies.setSession(x, s)
		if reply.issued, err = h.issuedIfPreferred(x, in.HTML, s); err != nil {
			return op.Outcome{}, err
		}
	}
	o := h.withCodes(&s.Session, "factor-added", codes)
	o.Body = reply
	return o, nil
}

// addFactor is confirmFactor without a code.
func (h secondFactors) addFactor(x *httpkit.Exchange, me *sessions.Session, m about.Method,
	in op.Input) (op.Outcome, error) {
	return h.confirmFactor(x, me, m, factorCode{Input: in})
}

// renewRecoveryCodes replaces the logged-in user's recovery codes.
func (h secondFactors) renewRecoveryCodes(x *httpkit.Exchange, me *sessions.Session, _ op.Input) (op.Outcome, error) {
	codes, err := h.service.Enrollment.RenewRecoveryCodes(x.Context(), me)
	o := h.withCodes(me, "", codes)
	o.Body = added{RecoveryCodes: codes}
	return o, err
}
