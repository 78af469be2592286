package login

import (
	"belfry/pkg/account"
	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Forms of the account page. HTML forms can neither PUT nor DELETE: what a program does so is a POST of the same resource.

// accountForm reads a form of the account page, and calls act with the session that it is sent in.
func (h *Handler) accountForm(x *kit.Exchange, act func(me *account.Session, f form) error) error {
	me, err := h.requireLogin(x)
	if err == nil {
		var f form
		if f, err = readForm(x); err == nil {
			err = act(me, f)
		}
	}
	if err != nil {
		return h.redirectToAccount(x, "", err)
	}
	return nil
}

// doneOr goes back to the account page after a change that succeeded.
func (h *Handler) doneOr(x *kit.Exchange, outcome string, err error) error {
	if err != nil {
		return err
	}
	return h.redirectToAccount(x, outcome, nil)
}

// endSessionForm ends a session, for an HTML form.
func (h *Handler) endSessionForm(x *kit.Exchange) error {
	return h.accountForm(x, func(me *account.Session, f form) error {
		id, err := x.UUID()
		if err != nil {
			return err
		}
		if err := f.requireRemove(); err != nil {
			return err
		}
		if err := h.service.Sessions.RevokeOwn(x.Context(), me, id); err != nil {
			return err
		}
		if id == me.ID {
			h.cookies.removeSession(x)
		}
		return h.redirectToAccount(x, "session-ended", nil)
	})
}

// requireRemove takes the field remove of a form that can do nothing else.
func (f form) requireRemove() error {
	remove, err := f.takeBool("remove")
	if err == nil && !remove {
		err = &errs.Error{Kind: errs.Invalid, Message: "a field is missing", Fields: []errs.Field{{Pointer: object.Pointer("remove"), Message: "must be true"}}}
	}
	return err
}

// changePasswordForm sets a new password, for an HTML form.
func (h *Handler) changePasswordForm(x *kit.Exchange, f form) error {
	session, err := h.newPassword(x, f)
	if h.repeated(x, err, true) {
		return nil
	}
	if err == nil {
		h.cookies.setSession(x, session)
	}
	return h.redirectToAccount(x, "password-set", err)
}

// changeAddressForm is changeAddress for an HTML form.
func (h *Handler) changeAddressForm(x *kit.Exchange) error {
	return h.accountForm(x, func(_ *account.Session, f form) error {
		ident, err := x.UUID()
		if err != nil {
			return err
		}
		return h.doneOr(x, "address-mailed", unlessMailed(true, h.requestChange(x, f, ident)))
	})
}

// deletionForm plans the deletion of the account, or takes that back, for an HTML form.
func (h *Handler) deletionForm(x *kit.Exchange) error {
	return h.accountForm(x, func(me *account.Session, f form) error {
		undo, err := f.takeBool("undo")
		if err != nil {
			return err
		}
		if undo {
			return h.doneOr(x, "deletion-undone", h.service.Deletion.Undo(x.Context(), me))
		}
		plan, session, err := h.planDeletionOf(x, f)
		if err != nil {
			return err
		}
		h.setAfterPlan(x, plan, session)
		return h.redirectToAccount(x, "deletion-planned", nil)
	})
}

// stepUpForm is stepUp for an HTML form.
func (h *Handler) stepUpForm(x *kit.Exchange) error {
	return h.accountForm(x, func(_ *account.Session, f form) error {
		kind, _ := object.Text(f.Object["type"])
		session, err := h.proveAgain(x, f)
		if h.repeated(x, err, true) {
			return nil
		}
		if err == nil {
			h.cookies.setSession(x, session)
		} else if h.service.Methods.About(kind).Sent() { // the mailed code can be tried again
			return h.redirectAccountFailure(x, withQuery(h.account, "mail", "sent"), err)
		}
		return h.doneOr(x, "proven", err)
	})
}

// proveAgain authenticates who is logged in again, by the fields of a form.
func (h *Handler) proveAgain(x *kit.Exchange, f form) (account.IssuedSession, error) {
	factor, err := h.takeFactor(x, f)
	if err != nil {
		return account.IssuedSession{}, err
	}
	password, err := f.takeOne("password")
	if err != nil {
		return account.IssuedSession{}, err
	}
	client, err := h.client(x)
	if err != nil {
		return account.IssuedSession{}, err
	}
	return h.service.StepUp.StepUp(x.Context(), password, factor, client)
}
