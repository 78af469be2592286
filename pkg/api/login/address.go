package login

import (
	"context"
	"net/http"

	"belfry/internal/ordered"
	"belfry/pkg/account/sessions"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

type addressForm struct {
	op.Input
	Address  string `form:"address,required" doc:"The new address."`
	Password string `form:"password" doc:"The password of the account, if it has one."`
}

type addressTokenForm struct {
	op.Input
	Login string `form:"login,or=email" doc:"The address that the mail was sent to"`
	Token string `form:"token,required" doc:"The token in the mail."`
	Keep  bool   `form:"keep" doc:"Keep the change, and end the right to undo it."`
}

// addAddress adds the operations of a change of address.
func (h mails) addAddress(set *op.Set) {
	set.Add(op.Operation{
		Method: http.MethodPut, Path: "/auth/idents/{uuid}/address", ID: "changeAddress",
		Summary: "Replace an address of one's account", Security: op.Needed(),
		Description: "Needs a login of the last ten minutes. Nothing changes before the mail to the new address is " +
			"confirmed. The reply does not reveal whether the new address belongs to another account.",
		Parameters: op.Parameters("UUID"),
		Body:       op.Form[addressForm](),
		Replies: ordered.Of("202",
			op.Reply("A mail will be sent to the new address, and one to the old.", nil, "Cache-Control")),
		Problems: formProblems(404),
		Limit:    httpkit.Write, Run: ownerForm(h.Handler, never, h.changeAddress),
	})
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/idents/{uuid}/address", ID: "changeAddressByForm",
		Summary: "Replace an address of one's account, by an HTML form", Security: op.Needed(),
		Parameters: op.Parameters("UUID"),
		Body:       op.HTMLForm[addressForm](),
		Replies:    ordered.Of("303", op.Redirect("To the page of the account.", "Set-Cookie")),
		Problems:   []int{403, 408},
		Limit:      httpkit.Write, Run: ownerForm(h.Handler, always, h.changeAddress),
	})
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/email/address", ID: "finishAddressChange",
		Summary: "Confirm or undo a change of address", Security: op.Maybe(),
		Description: "The token in the mail to the new address confirms the change, while logged in. The token in " +
			"the mail to the address that was proven longest undoes it, or with `keep` gives up the right to undo " +
			"it. The reply to an HTML form is 303.",
		Parameters: op.Parameters("Prefer"),
		Body:       op.Form[addressTokenForm](),
		Replies: ordered.Of("204",
			writtenReply("The change is confirmed, undone, which ends every session, or can no longer be undone."),
			"303", pageRedirect("Preference-Applied")),
		Problems: formProblems(404),
		Run:      anybody(h.Handler, op.IsHTML, h.finishAddress),
	})
}

// changeAddress requests the mails by which an address is replaced. The reply does not reveal whether the new one is
// taken.
func (h mails) changeAddress(x *httpkit.Exchange, _ *sessions.Session, in addressForm) (op.Outcome, error) {
	ident, err := x.UUID()
	if err != nil {
		return op.Outcome{}, err
	}
	client, err := h.client(x)
	if err != nil {
		return op.Outcome{}, err
	}
	o := h.ofAccount("address-mailed")
	o.Status = http.StatusAccepted
	err = unlessMailed(in.HTML, h.service.Addresses.Request(x.Context(), ident, in.Address, in.Password, client))
	if err != nil {
		if in.HTML {
			h.cookies.keepTyped(x, ident+" "+in.Address)
		}
		return op.Outcome{Failed: h.accountForm("address")}, err
	}
	return o, nil
}

// addressConfirmed is the page of a user whose new address is confirmed.
func (h *Handler) addressConfirmed() string {
	return withQuery(h.SuccessRedirect, "change", "confirmed", "validation", "email")
}

// finishAddress confirms or undoes a change of address, or ends the right to undo it, by the token of a mail.
func (h mails) finishAddress(x *httpkit.Exchange, in addressTokenForm) (o op.Outcome, err error) {
	client, err := h.client(x)
	if err != nil {
		return o, err
	}
	if in.HTML {
		client = knownBrowser(client)
	}
	undone := false
	err = h.write(x, func(ctx context.Context) (err error) {
		if in.Keep {
			return h.service.Addresses.KeepChanges(ctx, in.Login, in.Token, client)
		}
		undone, err = h.service.Addresses.Finish(ctx, in.Login, in.Token, client)
		return err
	})
	if err != nil {
		return o, err
	}
	if in.HTML {
		h.cookies.setBrowser(x, client)
	}
	switch {
	case in.Keep:
		o.To = withQuery(h.AddressRedirect, "change", "kept")
	case undone:
		o.To = withQuery(h.RecoveryRedirect, "mail", "sent")
	default:
		o.To = h.addressConfirmed()
	}
	return o, nil
}
