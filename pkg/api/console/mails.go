package console

import (
	"regexp"

	"belfry/pkg/mail"
)

// Mails is what the view Mails needs: mails that were written to a folder instead of being sent.
type Mails interface {
	// List returns the latest mails, the latest first.
	List(limit int) ([]mail.Written, error)
	// Read returns a mail by its name; errs.NotFound.
	Read(name string) (mail.Written, error)
}

// maxMails is how many mails are listed.
const maxMails = 50

func (c *Console) mails(m Mails) view {
	if m == nil {
		return view{}
	}
	v := mailsView{m}
	return view{name: "mails", title: "Mails", routes: []route{get("/mails", v.list), get("/mails/:name", v.one)}}
}

type mailsView struct{ mails Mails }

func (v mailsView) list(r *request) error {
	all, err := v.mails.List(maxMails)
	if err != nil {
		return err
	}
	return r.Page("mails", "Mails", all)
}

func (v mailsView) one(r *request) error {
	name, err := r.PathParam("name")
	if err != nil {
		return err
	}
	m, err := v.mails.Read(name)
	if err != nil {
		return err
	}
	return r.Page("mails_one", m.Subject, struct {
		mail.Written
		Pieces []piece
	}{m, pieces(m.Text)})
}

// piece is a part of a text: a link, or what is between links.
type piece struct {
	Text string
	Link bool
}

var webLink = regexp.MustCompile(`https?://[^\s<>"']*[^\s<>"'.,;:!?)]`)

// pieces finds the links of a text. They are of http and https alone.
func pieces(text string) (all []piece) {
	at := 0
	for _, found := range webLink.FindAllStringIndex(text, -1) {
		all = append(all, piece{Text: text[at:found[0]]}, piece{text[found[0]:found[1]], true})
		at = found[1]
	}
	return append(all, piece{Text: text[at:]})
}
