package login

import (
	"context"
	"net/http"

	"belfry/pkg/api/kit"
)

// changeAddress requests the mails by which an address is replaced. The reply does not reveal whether the new one is taken.
func (h *handler) changeAddress(x *kit.Exchange) error {
	_, ident, err := h.requireLoginFor(x)
	if err != nil {
		return err
	}
	f, err := readForm(x)
	if err != nil {
		return err
	}
	if err := h.requestChange(x, f, ident); err != nil {
		return err
	}
	return x.SendStatus(http.StatusAccepted)
}

func (h *handler) requestChange(x *kit.Exchange, f form, ident string) error {
	values, err := f.take("address", "password")
	if err != nil {
		return err
	}
	client, err := h.client(x)
	if err != nil {
		return err
	}
	return h.service.Addresses.Request(x.Context(), ident, values[0], values[1], client)
}

// finishAddress confirms or undoes a change of address, or ends the right to undo it, by the token of a mail.
func (h *handler) finishAddress(x *kit.Exchange) error {
	f, err := readForm(x)
	var keep, undone bool
	if err == nil {
		keep, undone, err = h.finishChange(x, f)
	}
	switch {
	case h.repeated(x, err, f.html):
	case err != nil && f.html:
		return h.redirectFailure(x, err, formReason(err))
	case err != nil:
		return err
	case !f.html:
		return x.SendStatus(http.StatusNoContent)
	case keep:
		redirect(x, http.StatusSeeOther, withQuery(h.address, "change", "kept"))
	case undone:
		redirect(x, http.StatusSeeOther, withQuery(h.recovery, "mail", "sent"))
	default:
		redirect(x, http.StatusSeeOther, withQuery(h.success, "validation", "email"))
	}
	return nil
}

func (h *handler) finishChange(x *kit.Exchange, f form) (keep, undone bool, err error) {
	login, err := f.takeLogin()
	if err != nil {
		return false, false, err
	}
	if keep, err = f.takeBool("keep"); err != nil {
		return false, false, err
	}
	token, err := f.takeOne("token")
	if err != nil {
		return false, false, err
	}
	client, err := h.client(x)
	if err != nil {
		return false, false, err
	}
	if f.html {
		client = knownBrowser(client)
	}
	err = h.write(x, func(ctx context.Context) (err error) {
		if keep {
			return h.service.Addresses.KeepChanges(ctx, login, token, client)
		}
		undone, err = h.service.Addresses.Finish(ctx, login, token, client)
		return err
	})
	if err == nil && f.html {
		h.cookies.setBrowser(x, client)
	}
	return keep, undone, err
}
