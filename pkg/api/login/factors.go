package login

import (
	"context"
	"net/http"

	"belfry/pkg/account"
	"belfry/pkg/api/kit"
)

// factors lists the second factors of who is logged in.
func (h *handler) factors(x *kit.Exchange) error {
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	x.SetHeader("Cache-Control", kit.NoStore)
	return x.SendJSON(h.service.Enrollment.Factors(x.Context(), session))
}

// enrollment is an authenticator app that is being set up.
type enrollment struct {
	Secret string `json:"secret"`
	URI    string `json:"uri"`
	QR     string `json:"qr"` // a data URL of a PNG
}

func (h *handler) beginTOTP(x *kit.Exchange) error {
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	e, err := h.service.TOTP.Begin(x.Context(), session)
	if err != nil {
		return err
	}
	x.SetHeader("Cache-Control", kit.NoStore)
	return x.SendJSON(enrollment{Secret: e.Secret, URI: e.URI, QR: qrURL(e.PNG)})
}

// added is the reply to a new second factor. The codes are shown once.
type added struct {
	RecoveryCodes []string `json:"recoveryCodes,omitempty"`
	*issued
}

func (h *handler) beginEmail(x *kit.Exchange) error {
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	if err := h.service.Mails.BeginFactor(x.Context(), session); err != nil {
		return err
	}
	return x.SendStatus(http.StatusAccepted)
}

func (h *handler) addPasskeyFactor(x *kit.Exchange) error {
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	codes, err := h.service.Passkeys.AddFactor(x.Context(), session)
	if err != nil {
		return err
	}
	x.SetHeader("Cache-Control", kit.NoStore)
	return x.SendJSON(added{RecoveryCodes: codes})
}

func (h *handler) confirmTOTP(x *kit.Exchange) error {
	return h.confirmFactor(x, h.service.TOTP.Confirm)
}

func (h *handler) confirmEmail(x *kit.Exchange) error {
	return h.confirmFactor(x, h.service.Mails.ConfirmFactor)
}

// confirmFactor adds a second factor by a code.
func (h *handler) confirmFactor(x *kit.Exchange, confirm func(ctx context.Context, code string, from account.Client) (account.IssuedSession, []string, error)) error {
	f, err := readForm(x)
	if err != nil {
		return err
	}
	values, err := f.take("code")
	if err != nil {
		return err
	}
	if _, err := h.requireLogin(x); err != nil {
		return err
	}
	client, err := h.client(x)
	if err != nil {
		return err
	}
	session, codes, err := confirm(x.Context(), values[0], client)
	if err != nil {
		return err
	}
	return h.sendAdded(x, session, codes)
}

// sendAdded replies with the recovery codes of somebody who has added a second factor, and the session that replaces theirs.
func (h *handler) sendAdded(x *kit.Exchange, s account.IssuedSession, codes []string) error {
	x.SetHeader("Cache-Control", kit.NoStore)
	if s.Token == "" { // the session stays: the factor counts later
		return x.SendJSON(added{})
	}
	h.cookies.setSession(x, s)
	representation, err := h.issuedIfPreferred(x, s)
	if err != nil {
		return err
	}
	return x.SendJSON(added{codes, representation})
}

func (h *handler) renewRecoveryCodes(x *kit.Exchange) error {
	if h.isForm(x) {
		return h.renewRecoveryCodesForm(x)
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

func (h *handler) removeFactor(x *kit.Exchange, kind string) error {
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	if err := h.service.Enrollment.Remove(x.Context(), session, kind); err != nil {
		return err
	}
	return x.SendStatus(http.StatusNoContent)
}
