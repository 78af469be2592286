package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// objectPage is the data of the page of an object.
type objectPage struct {
	Store                  StoreInfo
	UUID, Created, Updated string
	Name                   string // "" for none
	Revision               uint64
	Text                   string // what can be edited, as JSON
	Kept                   string // what belfry keeps, as JSON; "" for nothing
	Computed               string // what each write computes, as JSON; "" for nothing
	Request                string // of the API; "" when the store is not exposed
	Into, From             []copies
	References             []reference
	Files                  []fileList
	History                bool
	Check                  checked
	Pickers                []picker
	editing

	Conflict *conflict // another write came first
}

// conflict is a write of another client that came first.
type conflict struct {
	Current string   // what can be edited, as JSON, at the current revision
	Diff    []change // from there to what was sent
}

// copies are the copies by one mapping, or their sources.
type copies struct {
	Store, Field string // the other store; the array that holds the copies
	Key          string
	ID           string // of the list in the page
	Objects      []named
	From, More   int    // how many are before these, and after them
	Prev, Next   string // what follows the path of the object's page; "" for none
	Hidden       bool   // the condition of the mapping does not hold, so there is no copy
}

// reference is what a reference of an object names.
type reference struct {
	copies
	OnDelete string   // what the deletion of a named object does with this one
	Copied   []string // the fields that have their values from there
}

// maxCopies is how many copies of one mapping a page shows at a time.
const maxCopies = 50

// one returns the object that the path names: as the admin sees it, and with all its fields, which mappings need.
func (v *objectsView) one(r *request) (info StoreInfo, st *store.Store, shown, full store.Stored, err error) {
	info, st, err = v.store(r)
	if err != nil {
		return info, st, shown, full, err
	}
	ctx, uuid, err := r.CallAbout()
	if err != nil {
		return info, st, shown, full, err
	}
	if shown, err = st.Get(ctx, uuid); err == nil {
		full, err = st.GetAuthorized(ctx, uuid, policy.Get, nil)
	}
	return info, st, shown, full, err
}

// object shows an object.
func (v *objectsView) object(r *request) error {
	info, st, shown, full, err := v.one(r)
	if err != nil {
		return err
	}
	p, err := v.page(r, info, st, shown, full)
	if err != nil {
		return err
	}
	return r.Page("objects_one", p.title(), p)
}

// title is what the page of the object is called.
func (p objectPage) title() string { return cmp.Or(p.Name, p.UUID) + " · " + p.Store.Name }

// objects implements showsObjects.
func (p objectPage) objects() (all []*named) {
	for i := range p.References {
		all = append(all, pointers(p.References[i].Objects)...)
	}
	for _, some := range [][]copies{p.Into, p.From} {
		for i := range some {
			all = append(all, pointers(some[i].Objects)...)
		}
	}
	for i := range p.Pickers {
		all = append(all, pointers(p.Pickers[i].Names)...)
	}
	return all
}

// page collects the data of the page of an object. It reads only the object.
func (v *objectsView) page(r *request, info StoreInfo, st *store.Store, shown, full store.Stored) (objectPage, error) {
	p := objectPage{Store: info, UUID: shown.UUID, Name: nameOf(info, shown.Body), Revision: shown.Revision,
		History: v.history != nil}
	p.Created, _ = object.Text(object.Field(shown.Body, "created"))
	p.Updated, _ = object.Text(object.Field(shown.Body, "updated"))
	if info.URL != "" {
		p.Request = "curl " + quote(r.Base().At(info.URL+"/"+shown.UUID))
	}
	var err error
	if p.Text, p.Kept, p.Computed, err = split(st, shown.Body); err != nil {
		return p, err
	}
	if p.Check, err = checkStored(r.Context(), st, full, p.Text); err != nil {
		return p, err
	}
	for i, m := range v.set.MappingsFrom(info.Name) {
		c := copies{ID: fmt.Sprintf("into-%d", i), Store: m.Target, Field: m.Array, Key: m.Key}
		v.addPage(r, &c, store.KeyTargets(object.Field(full.Body, m.Key)))
		c.Hidden = m.Hides(full.Body)
		if len(c.Objects) > 0 {
			p.Into = append(p.Into, c)
		}
	}
	for i, m := range v.set.MappingsInto(info.Name) {
		c := copies{ID: fmt.Sprintf("from-%d", i), Store: m.Source, Field: m.Array, Key: m.Key}
		v.addPage(r, &c, uuidsOf(object.Field(shown.Body, m.Array)))
		p.From = append(p.From, c)
	}
	p.References = v.references(r, st, shown)
	if !info.Fixed {
		p = v.withPickers(p, st, nil)
	}
	p.Files, err = v.filesOf(info, st, shown)
	shownFiles(p.Files)
	return p, err
}

// references returns what an object names by its references.
func (v *objectsView) references(r *request, st *store.Store, shown store.Stored) (all []reference) {
	for i, ref := range st.References() {
		named := copies{ID: fmt.Sprintf("names-%d", i), Store: ref.Target, Key: ref.Field}
		v.addPage(r, &named, store.KeyTargets(object.Field(shown.Body, ref.Field)))
		if len(named.Objects) == 0 {
			continue
		}
		one := reference{copies: named, OnDelete: ref.OnDelete}
		for _, c := range st.Copies() {
			if c.Reference == ref.Field {
				one.Copied = append(one.Copied, c.Field)
			}
		}
		all = append(all, one)
	}
	return all
}

// addPage adds a part of the objects to those of a mapping or a reference of an object: from where the parameter of the
// request says that is called as the list.
func (v *objectsView) addPage(r *request, c *copies, uuids []string) {
	from, _ := strconv.Atoi(r.Query(c.ID))
	if from = from / maxCopies * maxCopies; from < 0 || from >= len(uuids) {
		from = 0
	}
	to := min(from+maxCopies, len(uuids))
	page := func(from int) string { return "?" + c.ID + "=" + strconv.Itoa(from) + "#" + c.ID }
	if from > 0 {
		c.Prev = page(from - maxCopies)
	}
	if c.From, c.More = from, len(uuids)-to; c.More > 0 {
		c.Next = page(to)
	}
	c.Objects = v.names.all(c.Store, uuids[from:to])
}

// uuidsOf returns the uuids of the entries of a mapped array.
func uuidsOf(array json.RawMessage) (all []string) {
	object.Elements(array, func(entry []byte) bool {
		if uuid, ok := object.Text(object.Field(entry, "uuid")); ok && object.ValidUUID(uuid) {
			all = append(all, uuid)
		}
		return true
	})
	return all
}

// checkStored returns how an object as it is stored fits the schema, which may have changed since it was written.
func checkStored(ctx context.Context, st *store.Store, full store.Stored, text string) (checked, error) {
	mismatch, err := st.SchemaMismatch(ctx, full)
	if err != nil || mismatch == nil {
		return checked{OK: err == nil}, err
	}
	return checked{Stored: true, Problem: mismatch.Message, Fields: violationsIn(text, mismatch.Errors)}, nil
}

// split returns the fields of an object that an admin may set, those that each write computes, and the others that
// belfry keeps, as indented JSON in the order of the object. The uuid and the times are shown elsewhere.
func split(st *store.Store, body []byte) (editable, kept, computed string, err error) {
	o, err := object.Decode(body)
	if err != nil {
		return "", "", "", err
	}
	settable := st.Rules().SettableByInterceptor(o)
	var own, derived, others [][]byte
	_ = object.Each(body, func(name string, value []byte) bool {
		field := append(object.AppendString(nil, name), ':')
		field = append(field, value...)
		if _, ok := settable[name]; ok {
			own = append(own, field)
		} else if slices.Contains(st.ComputedFields(), name) {
			derived = append(derived, field)
		} else if name != "uuid" && name != "created" && name != "updated" {
			others = append(others, field)
		}
		return true
	})
	if len(others) > 0 {
		kept = readable(joinFields(others), maxKept)
	}
	if len(derived) > 0 {
		computed = readable(joinFields(derived), maxKept)
	}
	return indent(joinFields(own)), kept, computed, nil
}

// maxKept is how much of what belfry keeps a page shows, in bytes: a mapped array can have 16 MiB.
const maxKept = 256 << 10

func joinFields(fields [][]byte) []byte {
	return append(append([]byte{'{'}, bytes.Join(fields, []byte{','})...), '}')
}

// revision returns the revision of the form, at which an object has to be.
func (r *request) revision() (uint64, error) {
	form, err := r.Form()
	if err != nil {
		return 0, err
	}
	revision, err := strconv.ParseUint(form.Get("revision"), 10, 64)
	if err != nil || revision == 0 {
		return 0, errs.New(errs.Invalid, "the form has no revision: open the page again")
	}
	return revision, nil
}

// messageOf returns an error's message for people.
func messageOf(err error) (string, []errs.Field) {
	e := asError(err)
	if e == nil || e.Kind == errs.Internal {
		return "The server failed. Its log has the details.", nil
	}
	return httpkit.Truncate(e.Message, 1000), e.Fields
}
