package console

import (
	"encoding/base64"
	"encoding/json"
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
// never leads to another form.
var undoPath = regexp.MustCompile(`^` + Path + `/(?:pins|objects/[^/?#]+/object/[^/?#]+/undelete)$`)

// RedirectUndo is Redirect with a form in the notice that undoes what was done; nil for none.
func (r *request) RedirectUndo(target, text string, back *undo) error {
	if text != "" {
		r.setNotice(notice{text, back}, noticeAge)
	}
	r.seeOther(target)
	return nil
}

// setNotice makes the next page show a notice; a negative age removes it.
func (r *request) setNotice(n notice, age int) {
	value := ""
	if age > 0 {
		n.Text = httpkit.Truncate(n.Text, maxNotice)
		text, _ := json.Marshal(n) // strings
		value = base64.RawURLEncoding.EncodeToString(text)
	}
	r.console.sessions.SetCookie(r.Exchange, noticeCookie, value, age)
}

// takeNotice returns the notice of the previous page, and removes it; nil for none.
func (r *request) takeNotice() *notice {
	cookies := r.console.sessions.Cookie(r.Exchange, noticeCookie)
	if len(cookies) > 0 {
		r.setNotice(notice{}, -1)
	}
	for _, cookie := range cookies {
		text, err := base64.RawURLEncoding.DecodeString(cookie)
		var n notice
		if err != nil || len(text) > maxNotice*6+maxUndo || json.Unmarshal(text, &n) != nil || n.Text == "" {
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
