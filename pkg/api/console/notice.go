package console

import (
	"regexp"
	"strings"

	"belfry/pkg/httpkit"
)

// notice says on the next page what was done.
type notice struct {
	Text string `json:"text"`
	Undo *undo  `json:"undo,omitempty"` // nil: it can't be undone from here
}

// undo is a form that takes back what was done.
type undo struct {
	Path   string            `json:"path"`
	Fields map[string]string `json:"fields,omitempty"`
}

const (
	noticeCookie = "belfry-console-notice"
	noticeAge    = 60 // seconds
	maxNotice    = 300
	maxUndo      = 1000 // bytes of the path and the fields
)

// undoPath matches the paths of forms that a notice can have. A cookie is not proof that belfry has set it, so it
// never leads to another form. Browsers take a backslash for a slash, and %2e%2e for two dots.
var undoPath = regexp.MustCompile(`^` + Path + `/(?:pins|objects/` +
	undoName + `/object/` + undoName + `/(?:undelete|undo))$`)

const undoName = `[^/?#%\\.][^/?#%\\]*`

// RedirectUndo is Redirect with a form in the notice that undoes what was done; nil for none.
func (r *request) RedirectUndo(target, text string, back *undo) error {
	if text != "" {
		n := notice{httpkit.Truncate(text, maxNotice), back}
		if err := r.setCookie(noticeCookie, n, noticeAge); err != nil {
			return err
		}
	}
	r.seeOther(target)
	return nil
}

// takeNotice returns the notice of the previous page, and removes it; nil for none.
func (r *request) takeNotice() *notice {
	if len(r.console.sessions.Cookie(r.Exchange, noticeCookie)) > 0 {
		r.removeCookie(noticeCookie)
	}
	for _, n := range cookieValues[notice](r, noticeCookie, maxNotice*6+maxUndo) {
		if n.Text == "" {
			continue
		}
		n.Text = httpkit.Truncate(strings.ToValidUTF8(n.Text, ""), maxNotice)
		if n.Undo != nil && !undoPath.MatchString(n.Undo.Path) {
			n.Undo = nil
		}
		return &n
	}
	return nil
}
