package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// checked is the result of checking a text that is being edited.
type checked struct {
	OK      bool
	Stored  bool // it is the object as it is stored
	Problem string
	Fields  []violation
	Ignored []string // fields that belfry keeps, so their values are ignored
}

// failed sets what is wrong.
func (c *checked) failed(err error, text string) {
	_, found := messageOf(err)
	c.Problem, c.Fields = place(err, text), violationsIn(text, found)
}

// newObject shows the form of a new object.
func (v *objectsView) newObject(r *request) error {
	info, st, err := v.writable(r)
	if err != nil {
		return err
	}
	text, err := v.duplicated(r, st)
	if err != nil {
		return err
	}
	p := v.withPickers(objectPage{Store: info, Text: cmp.Or(text, newText(st))}, st, nil)
	return r.Page("objects_new", "New object of "+info.Name, p)
}

// create saves a new object.
func (v *objectsView) create(r *request) error {
	info, st, err := v.writable(r)
	if err != nil {
		return err
	}
	form, ctx, err := r.Submitted()
	if err != nil {
		return err
	}
	s := v.read(info.Name, st, form)
	var stored store.Stored
	o, err := s.object()
	if err == nil {
		stored, err = st.Save(ctx, o, "")
	}
	if err != nil {
		return r.again(err, s.text, "objects_new", "New object of "+info.Name, func(c checked) any {
			s.Edited = true
			return v.withPickers(objectPage{Store: info, Text: s.text, Check: c, editing: s.editing}, st, form)
		})
	}
	if form.Get("then") == "new" {
		return r.Redirect(pathOf("objects", info.Name, "new"), "The object "+stored.UUID+" has been created.")
	}
	return r.Redirect(pathOf("objects", info.Name, "object", stored.UUID), "The object has been created.")
}

// again shows a form with its problems; other errors are returned.
func (r *request) again(err error, text, name, title string, data func(checked) any) error {
	switch kind := errs.KindOf(err); kind {
	case errs.Invalid, errs.Exists, errs.Taken, errs.TooLarge, errs.Denied, errs.Conflict:
		r.RecordError(err)
		var c checked
		c.failed(err, text)
		return r.page(http.StatusUnprocessableEntity, name, title, data(c))
	}
	return err
}

// update saves an object at the revision that was shown. If it has another one, both versions are shown.
func (v *objectsView) update(r *request) error {
	if _, _, err := v.writable(r); err != nil {
		return err
	}
	info, st, shown, full, err := v.one(r)
	if err != nil {
		return err
	}
	revision, err := r.revision()
	if err != nil {
		return err
	}
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	s := v.read(info.Name, st, r.Request.PostForm)
	var saved store.Stored
	o, err := s.object()
	if err == nil {
		if shown.Revision == revision || store.OnlyWorkersSince(full, revision) {
			saved, err = save(ctx, st, shown, o)
		} else {
			err = errConflict
		}
	}
	if err == nil {
		return r.RedirectUndo(pathOf("objects", info.Name, "object", shown.UUID), "The object has been saved.",
			v.undoEdit(info, shown, saved))
	}
	if errors.Is(err, errs.Mismatch) {
		var failed error
		if _, _, shown, full, failed = v.one(r); failed != nil {
			return failed
		}
	}
	p, failed := v.page(r, info, st, shown, full)
	if failed != nil {
		return failed
	}
	s.Edited = true
	p.editing = s.editing
	title := p.title()
	if !errors.Is(err, errs.Mismatch) {
		return r.again(err, s.text, "objects_one", title, func(c checked) any {
			p.Text, p.Check, p.Revision = s.text, c, revision
			return v.withPickers(p, st, r.Request.PostForm)
		})
	}
	p.Conflict = &conflict{Current: p.Text, Diff: diff(sorted(p.Text), sorted(s.text))}
	p.Text, p.Check = s.text, checked{}
	return r.page(http.StatusPreconditionFailed, "objects_one", title, v.withPickers(p, st, r.Request.PostForm))
}

// sorted returns the text of an object with its fields in one order, so that texts can be compared by line.
func sorted(text string) string {
	o, err := object.Parse([]byte(text))
	if err != nil {
		return text
	}
	return indent(o.Encode())
}

// errConflict means that an object is no longer at the revision that was shown.
var errConflict = errs.New(errs.Mismatch, "the object has been changed since")

// save writes the differences between the object as it was shown and the edited one. It removes fields that the edited
// object lacks. Fields that an admin may not set stay as they are.
func save(ctx context.Context, st *store.Store, shown store.Stored, edited object.Object) (store.Stored, error) {
	before, err := shown.Object()
	if err != nil {
		return store.Stored{}, err
	}
	fields := changes(st, before, edited)
	return st.Mutate(ctx, shown.UUID, func(now store.Stored) (store.Mutation, error) {
		if now.Revision != shown.Revision {
			return store.Mutation{}, errConflict
		}
		return store.Mutation{Fields: fields}, nil
	})
}

// changes returns the fields that differ, nil for those that are removed. Numbers differ if their digits do, even with
// the same value: the admin sees the digits, and may want them.
func changes(st *store.Store, before, edited object.Object) object.Object {
	old, next, fields := st.Rules().SettableByInterceptor(before), st.Rules().SettableByInterceptor(edited),
		object.Object{}
	for name, value := range next {
		if !object.SameDigits(old[name], value) {
			fields[name] = value
		}
	}
	for name := range old {
		if _, stays := next[name]; !stays {
			fields[name] = nil
		}
	}
	return fields
}

// check replies with the problems of a text that is being edited, of a new or an existing object.
func (v *objectsView) check(r *request) error {
	info, st, err := v.store(r)
	if err != nil {
		return err
	}
	form, ctx, err := r.Submitted()
	if err != nil {
		return err
	}
	s := v.read(info.Name, st, form)
	p := objectPage{Store: info, Text: s.text, editing: s.editing}
	p.UUID, _ = r.PathParam("uuid")
	p.Script = true
	if p.Check, err = s.check(ctx, st, p.UUID); err != nil {
		return err
	}
	return r.Fragment("objects_new", "checked", v.withPickers(p, st, form))
}

// check validates an object that is being edited.
func (s submitted) check(ctx context.Context, st *store.Store, uuid string) (c checked, err error) {
	if s.failed == nil {
		return checkText(ctx, st, uuid, s.text)
	}
	c.failed(s.failed, s.text)
	return c, nil
}

// checkText validates a text as a save would, without saving anything.
func checkText(ctx context.Context, st *store.Store, uuid, text string) (c checked, err error) {
	edited, err := object.Parse([]byte(text))
	if err != nil {
		c.failed(err, text)
		return c, nil
	}
	candidate := edited
	if uuid != "" {
		full, err := st.GetAuthorized(ctx, uuid, policy.Get, nil)
		if err != nil {
			return c, err
		}
		now, err := full.Object()
		if err != nil {
			return c, err
		}
		shown, err := object.Decode(st.Rules().Visible(full.Body))
		if err != nil {
			return c, err
		}
		candidate = now
		for name, value := range changes(st, shown, edited) {
			if candidate[name] = value; value == nil {
				delete(candidate, name)
			}
		}
		// Not as a client: private fields stay in the object, and the schema may require them.
		ctx = store.WithCall(ctx, store.Call{})
	}
	settable := st.Rules().SettableByInterceptor(edited)
	for name := range edited {
		if _, ok := settable[name]; !ok && (name != "uuid" || uuid != "") {
			c.Ignored = append(c.Ignored, name)
		}
	}
	slices.Sort(c.Ignored)
	if err := st.Rules().Concealed(st.Check(ctx, candidate, uuid)); err != nil {
		c.failed(err, text)
		return c, nil
	}
	c.OK = true
	return c, nil
}

// place returns an error's message for people. For malformed JSON it has the line.
func place(err error, text string) string {
	message, _ := messageOf(err)
	var offset int
	if i := strings.LastIndex(message, "byte "); i >= 0 {
		if _, scanned := fmt.Sscanf(message[i:], "byte %d", &offset); scanned == nil && offset <= len(text) {
			message = fmt.Sprintf("line %d: %s", strings.Count(text[:offset], "\n")+1, message)
		}
	}
	return message
}

// asError returns the error of package errs in a chain, nil for none.
func asError(err error) *errs.Error {
	var e *errs.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
