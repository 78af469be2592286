package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Bounds of a search for objects that a reference can name.
const (
	maxHits     = 20
	maxQuery    = 200 // bytes of what is searched for
	maxTried    = 3   // indexes by which it is searched
	maxSearched = 200 // objects that are read where no index helps
	maxChosen   = 50  // named objects that are shown
)

// picker is a reference of an object that is being edited: what it names, and a search for what it could name. The
// form works without scripts: each button sends the text, which comes back with what it names.
type picker struct {
	Field, Target   string
	Required        bool
	Several, Either bool // it names several objects; it may be a uuid or an array, as the admin likes
	Names           []named
	More            int // named objects that are not shown
	Wrong           []string

	Query    string
	Searched bool
	Hits     []hit
	Note     string // why there may be more hits
	Focus    bool   // it has just been changed
	Within   bool   // it is in the form of the object
}

// hit is an object that a reference can name.
type hit struct{ UUID, Label string }

// At returns the path of a step of the object's form.
func (p objectPage) At(step string) string {
	if p.UUID == "" {
		return pathOf("objects", p.Store.Name, step)
	}
	return pathOf("objects", p.Store.Name, "object", p.UUID, step)
}

// withPickers adds the references that an admin can set in the text of a page, and its form.
func (v *objectsView) withPickers(p objectPage, st *store.Store, form url.Values) objectPage {
	p.Pickers = nil
	body := compacted(p.Text)
	types := typesOf(st)
	for _, ref := range st.References() {
		target, _ := v.shown(ref.Target)
		settable := st.Rules().SettableByInterceptor(object.Object{ref.Field: []byte(`""`)})
		if target.Name == "" || len(settable) == 0 {
			continue // only what the console shows can be chosen
		}
		value := object.Field(body, ref.Field)
		one := picker{Field: ref.Field, Target: ref.Target, Required: ref.Required,
			Query: strings.TrimSpace(form.Get("q." + ref.Field))}
		uuids := store.KeyTargets(value)
		switch types[ref.Field] {
		case "array":
			one.Several = true
		case "":
			one.Several = len(value) > 0 && value[0] == '[' || form.Has("several."+ref.Field)
			one.Either = true
		}
		if most := len(uuids) - maxChosen; most > 0 {
			uuids, one.More = uuids[:maxChosen], most
		}
		one.Names = v.names.all(ref.Target, uuids)
		for _, f := range p.Check.Fields {
			at := object.Pointer(ref.Field)
			if f.Pointer == at || strings.HasPrefix(f.Pointer, at+"/") {
				one.Wrong = append(one.Wrong, f.Message)
			}
		}
		p.Pickers = append(p.Pickers, one)
	}
	return v.withForm(p, st)
}

// typesOf returns the types that the schema of a store declares, by field.
func typesOf(st *store.Store) map[string]string {
	if typed, ok := st.Schema().(interface{ Types() map[string]string }); ok {
		return typed.Types()
	}
	return nil
}

// compacted returns the text of an object without spaces; nil for another one.
func compacted(text string) []byte {
	if _, err := object.Parse([]byte(text)); err != nil {
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, object.WithoutMark([]byte(text))); err != nil {
		return nil
	}
	return b.Bytes()
}

// pick handles a button of a form: it searches for what a reference can name, changes what the object names, adds or
// removes a row, or continues with JSON or the form. Nothing is saved.
func (v *objectsView) pick(r *request) error {
	info, st, err := v.writable(r)
	if err != nil {
		return err
	}
	form, ctx, err := r.Submitted()
	if err != nil {
		return err
	}
	s := v.read(info.Name, st, form)
	text, changed := edited(st, s.text, form)
	if changed != "" || form.Has("to") {
		s.text, s.Form, s.failed = text, nil, nil
	}
	uuid, _ := r.PathParam("uuid")
	p := objectPage{Store: info, UUID: uuid}
	name, title := "objects_new", "New object of "+info.Name
	if uuid != "" && !r.Partial() {
		_, _, shown, full, err := v.one(r)
		if err != nil {
			return err
		}
		if p, err = v.page(r, info, st, shown, full); err != nil {
			return err
		}
		if p.Revision, err = r.revision(); err != nil {
			return err
		}
		name, title = "objects_one", p.title()
	}
	p.Text, p.editing, p.Script = text, s.editing, r.Partial()
	switch form.Get("to") {
	case asForm, asJSON:
		p.Mode = form.Get("to")
	}
	if p.Check, err = s.check(ctx, st, uuid); err != nil {
		return err
	}
	p = v.withPickers(p, st, form)
	for i := range p.Pickers {
		one := &p.Pickers[i]
		if one.Focus = one.Field == changed; one.Focus {
			one.Query = ""
		}
		if !one.asked(r, form) {
			continue
		}
		one.Searched = true
		if one.Hits, one.Note, err = v.find(ctx, one.Target, one.Query); err != nil {
			return err
		}
	}
	if r.Partial() {
		block := "searched"
		if changed != "" || form.Has("add") || form.Has("remove") {
			block = "picked"
		}
		return r.Fragment("objects_new", block, p)
	}
	return r.page(http.StatusOK, name, title, p)
}

// asked reports whether a request searches for what a reference can name: by its button, by its field with a script,
// or by a field that is filled in where the form is sent as a whole.
func (p *picker) asked(r *request, form url.Values) bool {
	switch {
	case form.Has("search." + p.Field):
		return true
	case r.Partial() && r.Request.Header.Get("Hx-Trigger-Name") != "":
		return r.Request.Header.Get("Hx-Trigger-Name") == "q."+p.Field
	default:
		return p.Query != ""
	}
}

// edited returns the text of a form with the change that its button makes, and the reference that the button changes.
func edited(st *store.Store, text string, form url.Values) (changed, field string) {
	body, types := compacted(text), typesOf(st)
	for _, ref := range st.References() {
		choose, remove := form.Get("choose."+ref.Field), form.Get("remove."+ref.Field)
		if body == nil && choose+remove != "" {
			return text, ref.Field // the check says what is wrong with it
		}
		value := object.Field(body, ref.Field)
		if object.ValidUUID(choose) {
			several := types[ref.Field] == "array" || types[ref.Field] == "" && form.Has("several."+ref.Field)
			return replaced(body, ref.Field, naming(value, choose, several, types[ref.Field])), ref.Field
		}
		if remove != "" {
			return replaced(body, ref.Field, withoutNamed(value, remove)), ref.Field
		}
	}
	return text, ""
}

// naming returns the value of a reference that also names an object; where it names one alone, instead of another.
func naming(value []byte, uuid string, several bool, kind string) []byte {
	element := object.AppendString(nil, uuid)
	if kind == "integer" && object.IsNumber(uuid) {
		element = []byte(uuid)
	}
	if !several {
		return element
	}
	if slices.Contains(store.KeyTargets(value), uuid) && value[0] == '[' {
		return value
	}
	var all [][]byte
	if _, one := object.Named(value); one && !slices.Equal(value, element) {
		all = append(all, value)
	}
	object.Elements(value, func(e []byte) bool {
		all = append(all, e)
		return true
	})
	return array(append(all, element))
}

// withoutNamed returns the value of a reference that does not name an object; nil: nothing.
func withoutNamed(value []byte, uuid string) []byte {
	if len(value) == 0 || value[0] != '[' {
		return nil
	}
	var left [][]byte
	object.Elements(value, func(e []byte) bool {
		if named, ok := object.Named(e); !ok || named != uuid {
			left = append(left, e)
		}
		return true
	})
	return array(left)
}

func array(elements [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(elements, []byte{','})...), ']')
}

// replaced returns the text of an object with another value of a field, where that was, or at its end; nil removes it.
func replaced(body []byte, field string, value []byte) string {
	var fields [][]byte
	add := func(name string, value []byte) {
		if value != nil {
			fields = append(fields, append(append(object.AppendString(nil, name), ':'), value...))
		}
	}
	had := false
	_ = object.Each(body, func(name string, old []byte) bool {
		if name == field {
			had, old = true, value
		}
		add(name, old)
		return true
	})
	if !had {
		add(field, value)
	}
	return indent(joinFields(fields))
}

// find returns objects of a store for what is typed, with the rights of the admin in the console: the one with that
// uuid, and those whose words, or the beginning of an indexed field, are that. Where no index helps, it searches the
// first objects.
func (v *objectsView) find(ctx context.Context, target, query string) (hits []hit, note string, err error) {
	info, st := v.shown(target)
	if st == nil {
		return nil, "", notFound("the console does not show the store %s", target)
	}
	if len(query) > maxQuery {
		return nil, fmt.Sprintf("Type at most %d bytes.", maxQuery), nil
	}
	s := search{info: info, st: st}
	if query == "" {
		err = s.list(ctx, store.ListOptions{Limit: maxHits}, nil)
		return s.hits, s.note, err
	}
	if object.ValidUUID(query) {
		o, err := st.Get(ctx, query)
		if err == nil {
			s.add(o)
		} else if kind := errs.KindOf(err); kind != errs.NotFound && kind != errs.Denied {
			return nil, "", err
		}
	}
	if len(info.Search) > 0 {
		err = s.list(ctx, store.ListOptions{Words: query + "*", Limit: maxHits}, nil)
		if kind := errs.KindOf(err); err == nil || kind != errs.Invalid && kind != errs.Unavailable {
			return s.hits, s.note, err
		}
	}
	for _, field := range leading(info) {
		filter := field + ".startsWith(" + string(object.AppendString(nil, query)) + ")"
		err = s.list(ctx, store.ListOptions{Filter: filter, Limit: maxHits}, nil)
		if err != nil && errs.KindOf(err) != errs.Invalid { // its values are no texts
			return nil, "", err
		}
	}
	if len(s.hits) == 0 {
		err = s.list(ctx, store.ListOptions{Limit: maxSearched}, func(h hit) bool {
			return strings.Contains(strings.ToLower(h.Label), strings.ToLower(query)) ||
				strings.HasPrefix(h.UUID, query)
		})
		return s.hits, s.note, err
	}
	return s.hits, s.note, nil
}

// search collects hits.
type search struct {
	info StoreInfo
	st   *store.Store
	hits []hit
	note string
}

// list adds the objects of a page that match.
func (s *search) list(ctx context.Context, o store.ListOptions, match func(hit) bool) error {
	o.MaxBytes = maxListBytes
	page, err := s.st.List(ctx, o)
	if err != nil {
		return err
	}
	for _, x := range page.Objects {
		if h := s.hitOf(x); match == nil || match(h) {
			s.addHit(h)
		}
	}
	switch {
	case page.Next == "":
	case match == nil:
		s.note = "There are more: type more of it."
	default:
		s.note = fmt.Sprintf("Only the first %d objects were searched: type a uuid, or the beginning of an "+
			"indexed field.", len(page.Objects))
	}
	return nil
}

func (s *search) add(x store.Stored) { s.addHit(s.hitOf(x)) }

func (s *search) addHit(h hit) {
	if slices.ContainsFunc(s.hits, func(has hit) bool { return has.UUID == h.UUID }) {
		return
	}
	if len(s.hits) == maxHits {
		s.note = "There are more: type more of it."
		return
	}
	s.hits = append(s.hits, h)
}

// hitOf returns an object with its name as a label, or else its first text: of the fields that are searched or indexed,
// or else of all that name no other object.
func (s *search) hitOf(x store.Stored) hit {
	if name := nameOf(s.info, x.Body); name != "" {
		return hit{x.UUID, name}
	}
	for _, field := range slices.Concat(s.info.Search, leading(s.info)) {
		if text, ok := object.Text(valueAt(x.Body, field)); ok && text != "" && !s.names(field) {
			return hit{x.UUID, shorten(text, maxCell)}
		}
	}
	h := hit{UUID: x.UUID}
	_ = object.Each(x.Body, func(name string, value []byte) bool {
		if text, ok := object.Text(value); ok && text != "" && !s.names(name) {
			h.Label = shorten(text, maxCell)
		}
		return h.Label == ""
	})
	return h
}

// names reports whether a field has no text for people: a uuid, or a time.
func (s *search) names(field string) bool {
	return isKept(field) || field == s.st.Rules().Owner() ||
		slices.ContainsFunc(s.st.References(), func(r store.Reference) bool { return r.Field == field })
}
