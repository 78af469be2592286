package bulk

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"sync"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/operations/importer"
	"belfry/pkg/operations/table"
	"belfry/pkg/store"
	"belfry/pkg/store/access"
)

// Choices for an object that exists already.
const (
	Skip    = "skip"
	Replace = "replace"
)

// ImportRequest is an import of a file into a store, with the fields of its form.
type ImportRequest struct {
	Store    string `json:"store"`
	File     string `json:"file"` // the id of an upload
	Name     string `json:"name"` // of the file
	Existing string `json:"existing"`
	Dry      bool   `json:"dry,omitempty"` // nothing is written
	Actor    string `json:"actor"`         // uuid of the admin
}

const (
	maxDeferred = 100_000 // rows that wait for the objects that they name
	maxPasses   = 20      // over the file, for these
	maxRow      = 4 << 20 // bytes of values that are imported: no store accepts an object as large
)

// Importable reports whether an import can set a field: belfry keeps or computes others.
func Importable(st *store.Store, name string) bool {
	return name != "" && name != table.UUID && !st.Rules().Hidden(name) &&
		!slices.Contains(st.ComputedFields(), name) &&
		!slices.ContainsFunc(st.Copies(), func(c store.Copy) bool { return c.Field == name }) &&
		len(st.Rules().SettableByInterceptor(object.Object{name: []byte("null")})) > 0
}

// Import loads the rows of a file into a store, each by itself. The context carries the call of the admin. It returns
// the last report also with an error. An import that writes removes the file at its end.
//
// Rows with the same uuid are handled one after the other, as they are in the file. An object that names objects of the
// same store which do not exist is written again at the end: they may come later in the file.
func Import(ctx context.Context, st *store.Store, u *Uploads, q ImportRequest, h Host) (*Report, error) {
	t := &tally{now: Report{Store: q.Store}, host: h}
	if q.Existing != Skip && q.Existing != Replace {
		return t.end(), errs.New(errs.Invalid, "choose what is to be done with objects that exist")
	}
	up, mapping, done, err := u.open(q.Actor, q.File)
	if err != nil {
		return t.end(), err
	}
	defer done()
	if up.Store != q.Store {
		return t.end(), errs.New(errs.Invalid, "the file was chosen for the store %s", up.Store)
	}
	if !q.Dry {
		defer u.Remove(q.Actor, q.File)
	}
	list, err := u.record(q.File)
	if err != nil {
		return t.end(), err
	}
	t.host.Refuse = list.add
	t.change(func(r *Report) { r.Total = up.Rows })
	mapping = slices.DeleteFunc(slices.Clone(mapping),
		func(c table.Column) bool { return c.To != table.UUID && !Importable(st, c.To) })
	im := &importing{st: st, up: up, mapping: mapping, q: q, tally: t}
	refers := slices.ContainsFunc(st.References(), func(r store.Reference) bool { return r.Target == st.Name() })
	im.deferring = refers && !q.Dry
	t.columns = map[string]string{}
	for _, c := range mapping {
		t.columns[c.To] = c.Name
	}
	err = im.run(ctx)
	return t.end(), err
}

// importing is an import in progress.
type importing struct {
	st      *store.Store
	up      *Upload
	mapping table.Mapping
	q       ImportRequest
	*tally

	deferring bool // objects that name missing ones wait

	mu   sync.Mutex
	only map[int64]bool // the numbers of the rows of this pass; nil: all
	left map[int64]bool // rows that wait for the next pass
}

// imported is a row as it is written.
type imported struct {
	line   int64
	number int64 // of the row
	uuid   string
	fields object.Object
	err    error
}

// run passes over the file, and again for the rows that wait, as long as there are fewer of them.
func (im *importing) run(ctx context.Context) error {
	for pass := 1; ; pass++ {
		im.left = map[int64]bool{}
		err := each(ctx, im.tally, im.rows(), func(x imported) string { return x.uuid }, im.write)
		if err != nil || len(im.left) == 0 {
			return err
		}
		im.deferring = pass < maxPasses && (im.only == nil || len(im.left) < len(im.only))
		im.only = im.left
	}
}

// rows iterates over the rows of a pass.
func (im *importing) rows() iter.Seq2[imported, error] {
	return func(yield func(imported, error) bool) {
		rows, err := im.up.Open(im.up.content())
		for err == nil {
			var row table.Row
			row, err = rows.Next()
			if err != nil || im.only != nil && !im.only[row.Number] {
				continue
			}
			if !yield(im.prepare(row), nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(imported{}, err)
		}
	}
}

// prepare returns a row as it is written.
func (im *importing) prepare(row table.Row) imported {
	x := imported{line: row.Line, number: row.Number}
	if row.Failure != "" {
		x.err = errs.New(errs.Invalid, "%s", row.Failure)
		return x
	}
	if x.fields, x.uuid, x.err = im.mapping.Object(row); x.err != nil {
		return x
	}
	size := 0
	for name, value := range x.fields {
		size += len(value)
		x.fields[name] = bytes.Clone(value) // the text of the row may be much larger
	}
	if x.uuid == "" {
		x.uuid = importer.DerivedUUID(row.Number, x.given())
	}
	if size > maxRow {
		x.fields, x.err = nil, errs.New(errs.TooLarge, "the row has values of more than %d MiB", maxRow>>20)
	}
	return x
}

// write writes a row, or checks it.
func (im *importing) write(ctx context.Context, x imported) error {
	of := Refusal{UUID: x.uuid, Line: x.line}
	var cell *table.CellError
	if errors.As(x.err, &cell) {
		of.Column, of.Reason = cell.Column, cell.Reason
		im.refuse(of)
		return nil
	}
	return im.attempt(ctx, of, func() (outcome, error) {
		if x.err != nil {
			return created, x.err
		}
		what, err := im.save(ctx, x)
		if errors.Is(err, store.ErrUnnamed) && im.wait(x.number) {
			return later, nil
		}
		return what, im.st.Rules().Concealed(err)
	})
}

// wait reports whether a row waits for the next pass.
func (im *importing) wait(number int64) bool {
	im.mu.Lock()
	defer im.mu.Unlock()
	if !im.deferring || len(im.left) == maxDeferred {
		return false
	}
	im.left[number] = true
	return true
}

// save writes an object, or checks what would become of it.
func (im *importing) save(ctx context.Context, x imported) (outcome, error) {
	exists, err := im.st.Exists(ctx, x.uuid)
	if err != nil {
		return created, err
	}
	if !exists {
		if err = im.create(ctx, x); !errors.Is(err, errs.Exists) {
			return created, err
		}
	}
	if im.q.Existing == Skip {
		return skipped, nil
	}
	what := changed
	change := func(now store.Stored) (store.Mutation, error) {
		fields := x.changes(now)
		if what = changed; len(fields) == 0 {
			what = same
		}
		return store.Mutation{Fields: fields}, nil
	}
	if im.q.Dry {
		err = store.CheckMutation(ctx, im.st, x.uuid, change)
	} else {
		_, err = im.st.Mutate(ctx, x.uuid, change)
	}
	return what, err
}

func (im *importing) create(ctx context.Context, x imported) error {
	if im.q.Dry {
		return im.st.Check(ctx, x.given(), x.uuid)
	}
	_, err := im.st.Save(ctx, x.given(), x.uuid)
	return err
}

// given are the fields that the row has values for.
func (x imported) given() object.Object {
	given := make(object.Object, len(x.fields))
	for name, value := range x.fields {
		if value != nil {
			given[name] = value
		}
	}
	return given
}

// changes are the fields that differ in an object. Those without a value are removed. The records of its files stay.
func (x imported) changes(now store.Stored) object.Object {
	fields := object.Object{}
	files := access.BinariesIn(object.Field(now.Body, access.BinariesField))
	for name, value := range x.fields {
		old := object.Field(now.Body, name)
		if files[name] != "" || len(old) == 0 && value == nil ||
			len(old) > 0 && value != nil && object.SameDigits(old, value) {
			continue
		}
		fields[name] = value
	}
	return fields
}
