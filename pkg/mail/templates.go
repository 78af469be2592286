package mail

import (
	"bytes"
	"errors"
	htmltemplate "html/template"
	"io"
	"regexp"
	"slices"
	"strings"
	texttemplate "text/template"
	"time"

	"belfry/internal/stopper"
	"belfry/pkg/errs"
)

// maxRendered is the most bytes of a rendered template.
const maxRendered = 64 << 10

// Data is the data of templates.
type Data struct {
	Link  string // for the recipient to open
	Token string // the secret in Link, for recipients who prefer to type it
	Login string // of the account; the person who registered it has chosen its text, so it is untrusted
	Name  string // of the application; "" if none is configured

	// For notices: their subject, such as an address, and the time of the event; the network address of the person who
	// caused it, its place, and the device. All but Time may be "". About is untrusted as well.
	About, Time, Address, Place, Device string
}

var sample = Data{Link: "https://example.com/?token=0123456789", Token: "0123456789", Login: "ada@example.com",
	About: "ada@example.org", Time: "2026-03-01 12:00 UTC", Address: "192.0.2.1", Place: "Linköping, Sweden",
	Device: "Firefox on Linux", Name: "Kitchen"}

// Templates are the texts of one kind of mail. They are safe for concurrent use.
type Templates struct {
	subject, text *texttemplate.Template
	html          *htmltemplate.Template

	languages map[string]*Templates // the same in others, by their tags
}

// Add adds the same mail in a language. It must not be called once the templates are in use.
func (t *Templates) Add(language string, in *Templates) {
	if t.languages == nil {
		t.languages = map[string]*Templates{}
	}
	t.languages[language] = in
}

// In returns the mail in a language; for one that it lacks, or that nobody knows, in English, where it has texts of the
// operator's, else the original.
func (t *Templates) In(language string) *Templates {
	for _, tag := range []string{language, "en"} {
		if in := t.languages[tag]; in != nil {
			return in
		}
	}
	return t
}

// ParseTemplates parses templates in the syntax of text/template, the html with
// the escaping of html/template. html or text may be empty. It executes each once
// and reports errs.Invalid for one that fails.
func ParseTemplates(subject, html, text string) (*Templates, error) {
	return parseWithin(tryTime, subject, html, text)
}

// parseWithin is ParseTemplates for texts that may take so long.
func parseWithin(most time.Duration, subject, html, text string) (*Templates, error) {
	if html, text = unlessBlank(html), unlessBlank(text); html == "" && text == "" {
		return nil, errs.New(errs.Invalid, "the mail has neither a text nor an html: give it one")
	}
	const strict = "missingkey=error"
	var t Templates
	var stop stopper.Stopper
	var err error
	if t.subject, err = texttemplate.New("subject").Funcs(stop.Functions()).Option(strict).Parse(subject); err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the mail's subject is not a template")
	}
	if t.text, err = texttemplate.New("text").Funcs(stop.Functions()).Option(strict).Parse(text); err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the mail's text is not a template")
	}
	if t.html, err = htmltemplate.New("html").Funcs(stop.Functions()).Option(strict).Parse(html); err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the mail's html is not a template")
	}
	for _, one := range slices.Concat(t.subject.Templates(), t.text.Templates()) {
		stop.Watch(one.Tree)
	}
	for _, one := range t.html.Templates() {
		stop.Watch(one.Tree)
	}
	rendered, at, err := t.try(&stop, most)
	switch {
	case err != nil:
		return nil, errs.Wrap(err,
			errs.Invalid, "the mail's %s can't be rendered; its data is {{.Link}}, {{.Token}}, {{.Login}} and "+
				"{{.Name}}, of a notice {{.Time}} and {{.Address}} too", at)
	case rendered.subject == "":
		return nil, errs.New(errs.Invalid, "the mail's subject is empty")
	}
	if err := checkSubject(rendered.subject); err != nil { // no mail of it could be sent
		return nil, err
	}
	return &t, nil
}

// tryTime is how long the texts of one mail may take. They take less than a millisecond. A process that serves reads
// them, and must not execute one forever.
const tryTime = 10 * time.Second

// try renders the texts with sample data.
func (t *Templates) try(stop *stopper.Stopper, most time.Duration) (rendered, string, error) {
	type result struct {
		rendered
		at string
	}
	results := make(chan result, 1)
	err := stop.Try(most, func() error {
		r, at, err := t.render(sample)
		results <- result{r, at}
		return err
	})
	select {
	case r := <-results:
		return r.rendered, r.at, err
	default:
		return rendered{}, "texts", err
	}
}

func unlessBlank(s string) string {
	if strings.TrimSpace(s) == "" {
		return ""
	}
	return s
}

// Render renders the texts of a mail. The subject is one line. The login is
// escaped in the html only. It reports errs.Invalid for data with which a template
// fails.
func (t *Templates) Render(d Data) (subject, html, text string, err error) {
	r, at, err := t.render(d)
	if err != nil {
		// The cause may quote a value, so only its position is reported.
		return "", "", "", errs.New(errs.Invalid, "the mail's %s can't be rendered%s", at, place(err))
	}
	return r.subject, r.html, r.text, nil
}

type rendered struct{ subject, html, text string }

// render also returns the name of the template that failed.
func (t *Templates) render(d Data) (r rendered, at string, err error) {
	if r.subject, err = execute(t.subject, d); err != nil {
		return r, "subject", err
	}
	if r.html, err = execute(t.html, d); err != nil {
		return r, "html", err
	}
	if r.text, err = execute(t.text, d); err != nil {
		return r, "text", err
	}
	r.subject = strings.Join(strings.Fields(r.subject), " ")
	return r, "", nil
}

var errTooLong = errors.New("it is longer than 64 KiB")

func execute(t interface{ Execute(io.Writer, any) error }, d Data) (string, error) {
	var b bounded
	err := t.Execute(&b, d)
	return b.b.String(), err
}

// bounded accepts at most maxRendered bytes.
type bounded struct{ b bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.b.Len()+len(p) > maxRendered {
		return 0, errTooLong
	}
	return b.b.Write(p)
}

var placed = regexp.MustCompile(`^template: \w+:(\d+)`)

// place describes where an execution failed, or that the result is too long.
func place(err error) string {
	if errors.Is(err, errTooLong) {
		return ": " + errTooLong.Error()
	}
	if m := placed.FindStringSubmatch(err.Error()); m != nil {
		return ": its line " + m[1] + " fails with this mail's data"
	}
	return ""
}
