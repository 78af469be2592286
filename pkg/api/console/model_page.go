package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"belfry/pkg/api/console/form"
	"belfry/pkg/errs"
)

// modelForm is a page on which an admin changes a part of the configuration: a form, then a page that shows what the
// change would do, and then the change.
type modelForm struct {
	Title  string
	Back   string   // path of the page that shows the part
	Done   string   // path of the page after the change
	Help   string   // of the form
	Topic  string   // of the documentation
	Remove string   // what the change removes: a name that the admin has to repeat; "" for nothing
	Submit string   // of the button
	Kept   []string // keys that are not shown and stay
	Names  string   // path of the names that expressions can have; "" if they are not known

	schema  *form.Schema // nil: there is nothing to fill in
	base    []byte       // what the form begins with
	secrets []modelSecret
	// draft makes the change of what was sent. Its errors have pointers into the form.
	draft func(d *ModelDocument, sent []byte) (*ModelDraft, error)
	// pointer returns where the form has a key of the configuration; "" if it does not have it.
	pointer func(key string) string
	// part is the pointer of the part of a schema that the form shows; "" if it shows none. draft may set it.
	part string
}

// Crumb names the page that Back leads to; "" for that of all stores.
func (f *modelForm) Crumb() string {
	switch f.Back {
	case Path + settingsPath:
		return "Settings"
	case Path + changesPath:
		return "Changes"
	default:
		of, _ := strings.CutPrefix(f.Back, Path+"/model")
		name, err := url.PathUnescape(strings.TrimPrefix(of, "/"))
		if err != nil {
			return of
		}
		return name
	}
}

// modelSecret is a secret that can be set. It is typed on the last page, and is not part of any reply.
type modelSecret struct {
	Label string
	Path  []string
	Set   bool // there is one already
}

// Name is the name of its input.
func (s modelSecret) Name() string { return secretInput + strings.Join(s.Path, ".") }

// modelFormPage is the data of the page with the form.
type modelFormPage struct {
	*modelForm
	Document *ModelDocument
	Action   string
	Edited   bool       // it has been sent, and is not applied
	Form     *form.Form // nil: there is nothing to fill in
	Secrets  []modelSecret
	Chosen   map[string]bool // secrets that are to be set
	Problem  string
	Problems []ModelProblem // those that belong to no field
	Confirm  string         // the name that was repeated
}

// modelConfirmPage is the data of the page that shows what a change would do.
type modelConfirmPage struct {
	*modelForm
	Document *ModelDocument
	Proposal *ModelProposal
	Action   string
	Files    []modelDiff
	Values   []keptValue
	Secrets  []modelSecret
	Problem  string
	Wrong    []errs.Field
	Undo     bool
}

// modelDiff is a file of a change as it is shown.
type modelDiff struct {
	ModelFile
	Lines []change
	ID    string
}

// Language is that of the file, for an editor.
func (d modelDiff) Language() string {
	if strings.HasSuffix(d.Name, ".json") {
		return "json"
	}
	return "yaml"
}

// The steps of the form, by the value of its button.
const (
	stepReview = ""
	stepEdit   = "edit"
	stepApply  = "apply"
)

// modelPage makes a form for a request. A part that does not exist is NotFound.
type modelPageOf func(r *request, d *ModelDocument) (*modelForm, error)

// routes returns the routes of a page.
func (v *modelEdit) routes(path string, of modelPageOf) []route {
	return []route{
		get(path, func(r *request) error { return v.open(r, of) }),
		keeping(post(path, func(r *request) error { return v.submit(r, of) })),
	}
}

// begin admits an admin whose login is recent, and reads the configuration.
func (v *modelEdit) begin(r *request, of modelPageOf) (*modelForm, *ModelDocument, error) {
	if err := r.console.service.Sessions.RequireFresh(r.Context(), r.Session); err != nil {
		return nil, nil, err
	}
	d, err := v.options.Editor.Document(r.Context())
	if err != nil {
		return nil, nil, err
	}
	f, err := of(r, d)
	return f, d, err
}

// open shows the form.
func (v *modelEdit) open(r *request, of modelPageOf) error {
	f, d, err := v.begin(r, of)
	if err != nil {
		return err
	}
	p := v.page(r, f, d)
	if f.schema != nil {
		if p.Form, err = f.schema.Show(f.base); err != nil {
			return err
		}
	}
	return r.Page("model_form", f.Title, p)
}

func (v *modelEdit) page(r *request, f *modelForm, d *ModelDocument) modelFormPage {
	path, _ := r.Base().Strip(r.Request.URL.RequestURI())
	return modelFormPage{modelForm: f, Document: d, Action: path, Secrets: f.secrets, Chosen: map[string]bool{}}
}

// submit shows what the form that was sent would change, or changes it.
func (v *modelEdit) submit(r *request, of modelPageOf) error {
	f, d, err := v.begin(r, of)
	if err != nil {
		return err
	}
	values, err := r.Form()
	if err != nil {
		return err
	}
	p := v.page(r, f, d)
	p.Edited = true
	p.Confirm = values.Get("confirmed")
	for _, s := range f.secrets {
		p.Chosen[s.Name()] = values.Get("set:"+s.Name()) != ""
	}
	sent := f.base
	var malformed []errs.Field
	if f.schema != nil {
		p.Form, sent, malformed, err = f.schema.Submit([]byte(values.Get("base")), values)
		if err != nil {
			return err
		}
	}
	step := values.Get("step")
	switch {
	case values.Has("add"), values.Has("remove"):
		if r.Partial() {
			return r.Fragment("model_form", "model_rows", p)
		}
		return r.Page("model_form", f.Title, p)
	case step == stepEdit:
		return r.Page("model_form", f.Title, p)
	case len(malformed) > 0:
		return v.again(r, p, &errs.Error{Kind: errs.Invalid, Message: "some fields have values of another kind",
			Fields: malformed})
	}
	draft, err := f.draft(d, sent)
	if err != nil {
		return v.again(r, p, err)
	}
	draft.Base, draft.Confirmed = values.Get("document"), p.Confirm
	for _, s := range f.secrets {
		if p.Chosen[s.Name()] {
			draft.Changes = append(draft.Changes, ModelChange{Path: s.Path, Secret: true})
		}
	}
	if r.Partial() { // what is typed is being validated
		draft.Base = d.Base
		proposal, err := v.options.Editor.Propose(r.Context(), draft)
		if err != nil {
			return v.again(r, p, err)
		}
		p.placed(proposal.Problems)
		return r.Fragment("model_form", "model_checked", p)
	}
	return v.review(r, p, draft, values, step == stepApply)
}

// review shows what a draft would change, or makes the change.
func (v *modelEdit) review(r *request, p modelFormPage, draft *ModelDraft, values url.Values, apply bool) error {
	var failed error
	if apply {
		draft.Secrets = map[string]string{}
		for _, s := range p.Secrets {
			if p.Chosen[s.Name()] {
				draft.Secrets[strings.Join(s.Path, ".")] = values.Get(s.Name())
			}
		}
		made, err := v.options.Editor.Apply(r.Context(), draft, r.actor())
		if err == nil {
			return r.Redirect(p.Done, "The configuration has been changed: "+strings.Join(made.Keys, ", ")+".")
		}
		failed = err
	}
	proposal, err := v.options.Editor.Propose(r.Context(), draft)
	if err == nil && len(proposal.Problems) > 0 {
		p.placed(proposal.Problems)
		return r.page(http.StatusUnprocessableEntity, "model_form", p.Title, p)
	}
	if err != nil {
		return v.again(r, p, err)
	}
	c := modelConfirmPage{modelForm: p.modelForm, Document: p.Document, Proposal: proposal, Action: p.Action,
		Files: diffsOf(proposal)}
	for _, s := range p.Secrets {
		if p.Chosen[s.Name()] {
			c.Secrets = append(c.Secrets, s)
		}
	}
	c.Values = repeated(values)
	status := http.StatusOK
	if failed != nil {
		r.RecordError(failed)
		c.Problem, c.Wrong = messageOf(failed)
		status = http.StatusUnprocessableEntity
	}
	return r.page(status, "model_confirm", p.Title, c)
}

// repeated returns what a form has sent, for the next one. Secrets are typed again.
func repeated(values url.Values) (all []keptValue) {
	names := make([]string, 0, len(values))
	for name := range values {
		if name != "step" && !strings.HasPrefix(name, secretInput) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range values[name] {
			all = append(all, keptValue{name, value})
		}
	}
	return all
}

func diffsOf(p *ModelProposal) (all []modelDiff) {
	for i, f := range p.Files {
		d := modelDiff{ModelFile: f, ID: "diff-" + string(rune('a'+i%26))}
		if !f.Secret {
			d.Lines = diff(f.Before, f.After)
		}
		all = append(all, d)
	}
	return all
}

// again shows the form with its faults. The typed values stay, and so does the choice when another admin came first:
// the next review shows the change of the configuration as it is now.
func (v *modelEdit) again(r *request, p modelFormPage, err error) error {
	status := http.StatusUnprocessableEntity
	switch errs.KindOf(err) {
	case errs.Mismatch:
		status = http.StatusPreconditionFailed
	case errs.Invalid, errs.Denied, errs.TooLarge, errs.Conflict:
	default:
		return err
	}
	p.failed(err)
	if r.Partial() { // what is typed is not complete yet
		return r.Fragment("model_form", "model_checked", p)
	}
	r.RecordError(err)
	if errors.Is(err, errs.Mismatch) {
		p.Problem = "The configuration has been changed since you opened this page. Review your change again: it is " +
			"now about the configuration as it is."
	}
	return r.page(status, "model_form", p.Title, p)
}

// actor is the admin, for the event of a change.
func (r *request) actor() ModelActor {
	c := r.client()
	return ModelActor{UUID: r.Session.User.UUID, Name: r.name(), Request: r.ID,
		Address: c.Address, UserAgent: c.UserAgent}
}

// encodeJSON encodes a value of package ordered. It does not escape HTML: people read the file.
func encodeJSON(v any) json.RawMessage {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil
	}
	return bytes.TrimSpace(text.Bytes())
}
