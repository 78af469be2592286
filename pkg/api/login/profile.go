package login

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/account/profile"
	"belfry/pkg/account/sessions"
	content "belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

const (
	namePath    = "/auth/me/name"
	picturePath = "/auth/me/picture"
)

// Profile is what users edit of themselves by forms of the account page.
type Profile struct {
	*profile.Profile

	// Receive stores the file of a request, of some media types, with the rights of its client.
	Receive func(x *httpkit.Exchange, place content.Place, types []string) error
}

type nameForm struct {
	op.Input
	Name *string `form:"name" doc:"The new name; an empty one removes it."`
}

type removalForm struct {
	op.Input
	Hash string `form:"hash,required" doc:"The hash of the picture to remove."`
}

// addProfile adds the operations by which users edit themselves with forms. Programs do the same by the routes of
// objects and files.
func (h *Handler) addProfile(set *op.Set) {
	p := set.Contract.Login.Profile
	toAccount := ordered.Of("303", op.Redirect("To the page of the account."))
	if p.Name != "" {
		set.Add(op.Operation{
			Method: http.MethodPost, Path: namePath, ID: "setNameByForm",
			Summary: "Set one's name, by an HTML form", Security: op.Needed(),
			Description: "The same as a PATCH of the user, with the same rules.",
			Body:        op.HTMLForm[nameForm](), Replies: toAccount, Problems: []int{403, 408},
			Limit: httpkit.Write, Run: ownerForm(h, always, h.rename),
		})
	}
	if p.Picture != nil {
		file := ordered.Of("type", "object", "required", []string{"file"}, "properties", ordered.Of("file", op.Raw()))
		body := op.HTMLForm[removalForm]()
		body.Object("content").Set(op.MultipartType, ordered.Of("schema", file))
		set.Add(op.Operation{
			Method: http.MethodPost, Path: picturePath, ID: "setPictureByForm",
			Summary: "Set or remove one's picture, by an HTML form", Security: op.Needed(),
			Description: "The same as an upload or a deletion of a file of the user, with the same rules.",
			Body:        body, Replies: toAccount, Problems: []int{403, 408},
			Limit: httpkit.Upload, Run: h.changePicture,
		})
	}
}

// rename sets the name of the logged-in user.
func (h *Handler) rename(x *httpkit.Exchange, me *sessions.Session, in nameForm) (op.Outcome, error) {
	var name string
	err := sessions.RequireComplete(me)
	switch {
	case err != nil:
	case in.Name == nil:
		err = errs.New(errs.Invalid, "the form has no name")
	default:
		name = strings.TrimSpace(*in.Name)
		err = h.write(x, func(ctx context.Context) error { return h.profile.Rename(ctx, me.User.UUID, name) })
	}
	if err != nil {
		h.cookies.keepTyped(x, name)
		return op.Outcome{Failed: h.accountForm("name"), Reason: profileReason(err, "name")}, err
	}
	return h.ofAccount("name-set"), nil
}

// changePicture sets the picture of the logged-in user, or removes it.
func (h *Handler) changePicture(x *httpkit.Exchange) error {
	me, err := h.requireLogin(x)
	if err == nil {
		err = sessions.RequireComplete(me)
	}
	o := h.ofAccount("picture-set")
	switch {
	case err != nil:
	case op.IsHTML(x):
		o = h.ofAccount("picture-removed")
		err = h.removePicture(x, me)
	default:
		err = h.receivePicture(x, me)
	}
	if err != nil {
		o = op.Outcome{Failed: h.accountForm("picture"), Reason: profileReason(err, "picture")}
	}
	return h.replyToOwner(x, true, o, err)
}

func (h *Handler) removePicture(x *httpkit.Exchange, me *sessions.Session) error {
	in, err := op.Read[removalForm](x, true)
	if err != nil {
		return err
	}
	if !h.profile.Picture.Delete {
		return errs.New(errs.Denied, "files have no delete over HTTP: expose.restrict.delete of the binary service")
	}
	return h.write(x, func(ctx context.Context) error {
		return h.profile.RemovePicture(ctx, me.User.UUID, in.Hash)
	})
}

func (h *Handler) receivePicture(x *httpkit.Exchange, me *sessions.Session) error {
	if !h.profile.Picture.Upload {
		return errs.New(errs.Denied, "files have no create over HTTP: expose.restrict.create of the binary service")
	}
	if !x.HasMedia(op.MultipartType) {
		x.CloseConnection()
		return errs.New(errs.Invalid, "a picture is sent as %s", op.MultipartType)
	}
	return h.profile.Receive(x, h.profile.Place(me.User.UUID), h.profile.Picture.Types)
}

// profileReason is the reason why a user could not be edited; invalid is that of a value that is not accepted.
func profileReason(err error, invalid string) string {
	if step := (*errs.StepUp)(nil); errors.As(err, &step) {
		return accountReason(err)
	}
	switch errs.KindOf(err) {
	case errs.Denied:
		return "denied"
	case errs.Invalid:
		return invalid
	case errs.TooLarge:
		return "large"
	case errs.Unsupported:
		return "type"
	case errs.Mismatch:
		return "gone"
	case errs.Conflict:
		return "unavailable"
	}
	return accountReason(err)
}
