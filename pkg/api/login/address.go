package login

import (
	"context"
	"net/http"

	"belfry/internal/ordered"
	"belfry/pkg/api/kit"
	"belfry/pkg/op"
)

// changeAddress requests the mails by which an address is replaced. The reply does not reveal whether the new one is taken.
func (h *Handler) changeAddress(x *kit.Exchange) error {
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

func (h *Handler) requestChange(x *kit.Exchange, f form, ident string) error {
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
func (h *Handler) finishAddress(x *kit.Exchange) error {
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

func (h *Handler) finishChange(x *kit.Exchange, f form) (keep, undone bool, err error) {
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

// addAddress adds the operations of a change of address.
func (h *Handler) addAddress(set *op.Set) {
	set.Add(op.Operation{
		Method: http.MethodPut, Path: "/auth/idents/{uuid}/address", ID: "changeAddress", Summary: "Replace an address of one's account", Security: op.Needed(),
		Description: "Needs a login of the last ten minutes. Nothing changes before the mail to the new address is confirmed. The reply does not reveal whether that belongs to another account.",
		Parameters:  op.Parameters("UUID"),
		Body:        op.Form([]string{"address"}, "address", op.Text("The new one."), "password", op.Text("That of the account, if there is one.")),
		Replies:     ordered.Of("202", op.Reply("A mail will be sent to the new address, and one to the old.", nil, "Cache-Control")),
		Problems:    formProblems(404),
		Limit:       kit.Write, Run: h.changeAddress,
	})
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/idents/{uuid}/address", ID: "changeAddressByForm", Summary: "Replace an address of one's account, by an HTML form", Security: op.Needed(),
		Parameters: op.Parameters("UUID"),
		Body:       op.HTMLForm([]string{"address"}, "address", op.Text("The new one."), "password", op.Text("That of the account, if there is one.")),
		Replies:    ordered.Of("303", op.Redirect("To the page of the account.")),
		Problems:   []int{403, 408},
		Limit:      kit.Write, Run: h.changeAddressForm,
	})
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/email/address", ID: "finishAddressChange", Summary: "Confirm or undo a change of address", Security: op.Maybe(),
		Description: "By the token of the mail to the new address, while logged in, or of that to the address which was proven longest. With `keep` the latter says that the change is right, and can't undo it any more. The reply to an HTML form is 303.",
		Parameters:  op.Parameters("Prefer"),
		Body:        op.Form([]string{"token"}, "login", op.Text("The address that the mail was sent to; `email` is another name for this field."), "token", op.Text("That of the mail."), "keep", op.Flag("The change stays, and the right to undo it ends.")),
		Replies: ordered.Of("204", done("It is confirmed; or undone: then every session has ended; or can't be undone any more."),
			"303", continued("Preference-Applied")),
		Problems: formProblems(404),
		Run:      h.finishAddress,
	})
}
