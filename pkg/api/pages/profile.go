package pages

import (
	"net/url"
	"strconv"
	"strings"

	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/texts"
)

// Profile is what the logged-in user edits of themselves on the page account.
type Profile struct {
	Renames bool   // there is a form for the name
	Name    string // as it is, or as it was entered before

	Uploads bool   // there is a form for the picture
	Accept  string // the media types that it takes, for a field of a file
	MaxSize string // of the picture, for people; "": there is no limit
	Picture string // URL of its thumbnail; "": none is shown
	Hash    string // of the picture; "": there is no picture
	Removes bool   // there is a form to remove it
}

// profile returns what the user of a session edits. A session that first needs another step edits nothing.
func (h *handler) profile(x *httpkit.Exchange, me *sessions.Session) (Profile, error) {
	p := h.o.Profile
	if p == nil || me.Missing != "" {
		return Profile{}, nil
	}
	ctx, err := h.calls.Client(x)
	if err != nil {
		return Profile{}, err
	}
	shown, err := p.Shown(ctx, me.User.UUID, me.Visible)
	if err != nil {
		return Profile{}, err
	}
	of := Profile{Renames: shown.Renames, Name: shown.Name, Hash: shown.Hash}
	if picture := p.Picture; picture != nil {
		of.Accept, of.Uploads = strings.Join(picture.Types, ","), picture.Upload && shown.Changes
		of.Removes = picture.Delete && shown.Changes && shown.Hash != ""
		if picture.MaxSize > 0 {
			of.MaxSize = sizeOf(picture.MaxSize)
		}
		if picture.URL != "" && picture.Thumb != "" && shown.Drawn {
			at := p.Place(me.User.UUID)
			path := picture.URL
			for _, segment := range []string{at.Store, at.UUID, at.Property, "0"} {
				path += "/" + url.PathEscape(segment)
			}
			of.Picture = h.service.Base().Below(path + "?thumb=" + picture.Thumb)
		}
	}
	return of, nil
}

// sizeOf writes a number of bytes as the file managers of browsers' systems do, never above it.
func sizeOf(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + " MB"
	case n >= 1<<10:
		return strconv.FormatInt(n>>10, 10) + " KB"
	}
	return strconv.FormatInt(n, 10) + " B"
}

// nameAgain shows the form of the name after a failure, with what was entered, and says why a rule or a schema refused
// that.
func (h *handler) nameAgain(x *httpkit.Exchange, l *texts.Language, me *sessions.Session, reason string,
	a *Account) error {
	if h.o.TakeTyped == nil {
		return nil
	}
	typed := h.o.TakeTyped(x)
	if typed == "" {
		return nil
	}
	a.Profile.Name = typed
	if reason != "name" {
		return nil
	}
	ctx, err := h.calls.Client(x)
	if err != nil {
		return err
	}
	a.Problem = nameProblem(l, h.o.Profile.Refusal(h.o.Profile.CheckName(ctx, me.User.UUID, typed)))
	return nil
}

// nameProblem says why a name is refused. The messages of schemas are English: in other languages only the violations
// with a text of their own are explained.
func nameProblem(l *texts.Language, why errs.Field) string {
	const general = "accountProblem.name"
	switch id := "nameProblem." + why.Keyword; {
	case l.Translates(id):
		return l.Text(id)
	case why.Message == "", why.Keyword != "" && l.Translates(general):
		return l.Text(general)
	}
	return l.Text("accountProblem.nameBecause", "message", why.Message)
}
