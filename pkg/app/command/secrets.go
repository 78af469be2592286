package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"belfry/config"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// maxLine is the maximum size of an object in an export: mapped arrays are large.
const maxLine = 64 << 20

// maxRejected is how many rejected objects a report lists.
const maxRejected = 100

// Imported is the result of Import.
type Imported struct {
	Read     int      `json:"read"`
	Created  int      `json:"created"`
	Updated  int      `json:"updated"`
	Existing int      `json:"existing"` // these were skipped
	Rejected []string `json:"rejected"`
	More     int      `json:"more"` // rejected objects that are not listed
}

// Clean reports whether no object was rejected.
func (i *Imported) Clean() bool { return len(i.Rejected) == 0 }

func (i *Imported) reject(format string, args ...any) {
	if len(i.Rejected) == maxRejected {
		i.More++
		return
	}
	i.Rejected = append(i.Rejected, fmt.Sprintf(format, args...))
}

// ImportRequest asks for the import of an export with secrets.
type ImportRequest struct {
	Store  string    `json:"store"`
	Update bool      `json:"update,omitempty"` // existing objects are replaced; otherwise they stay
	From   io.Reader `json:"-"`
}

// Import stores the objects of an export with secrets, with the fields that no client may set.
var Import = Operation[ImportRequest, Imported, none]{
	Name: "import", Broken: "; repeat the import; existing objects are skipped",
	Check: func(c *config.Config, q ImportRequest) error {
		if c.Stores[q.Store] == nil {
			return plan.UnknownStore(c, q.Store)
		}
		return nil
	},
	Input: func(q *ImportRequest) *io.Reader { return &q.From },
	Run: func(ctx context.Context, at *Place, q ImportRequest, _ func(none)) (*Imported, error) {
		if err := at.Claims(ctx); err != nil {
			return nil, err
		}
		return importSecrets(ctx, at.Plan, at.Set, q)
	},
}

// importSecrets imports into open stores.
func importSecrets(ctx context.Context, p *plan.Plan, set *store.Set, q ImportRequest) (*Imported, error) {
	name := q.Store
	s := set.Store(name)
	if s == nil {
		return nil, plan.UnknownStore(p.Config, name)
	}
	if config.Internal(name) {
		return nil, errs.New(errs.Invalid,
			"the store %s is internal: use `belfry backup` and `belfry restore` for its objects", name)
	}
	ctx = store.WithCall(ctx,
		store.Call{Origin: event.OriginCommand, Ctx: event.Ctx{UserAgent: "belfry import --secrets"}})
	result := &Imported{Rejected: []string{}}
	lines := bufio.NewScanner(q.From)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	var later deferredLines
	for number := 1; lines.Scan(); number++ {
		line := bytes.TrimSpace(object.WithoutMark(lines.Bytes()))
		if len(line) == 0 {
			continue
		}
		result.Read++
		if err := importLine(ctx, s, q.Update, line, result); err != nil {
			if kind := errs.KindOf(err); kind != errs.Invalid && kind != errs.TooLarge && kind != errs.Taken {
				return nil, err
			}
			if !errors.Is(err, store.ErrUnnamed) || !later.add(number, line, err) {
				result.reject("line %d: %v", number, err)
			}
		}
	}
	if err := later.importAll(ctx, s, q.Update, result); err != nil {
		return nil, err
	}
	return result, errs.Wrap(lines.Err(), errs.Invalid, "the export can't be read")
}

// maxDeferred is how many bytes of objects wait at most for those that they name.
const maxDeferred = 64 << 20

// deferredLines are objects that name objects which do not exist: these may come later in the export.
type deferredLines struct {
	all   []deferredLine
	bytes int
}

type deferredLine struct {
	number int
	line   []byte
	err    error
}

func (d *deferredLines) add(number int, line []byte, err error) bool {
	if d.bytes += len(line); d.bytes > maxDeferred {
		return false
	}
	d.all = append(d.all, deferredLine{number, bytes.Clone(line), err})
	return true
}

// importAll imports the objects, as long as there are some whose objects exist, and rejects the others.
func (d *deferredLines) importAll(ctx context.Context, s *store.Store, update bool, result *Imported) error {
	for {
		var left []deferredLine
		for _, l := range d.all {
			l.err = importLine(ctx, s, update, l.line, result)
			switch {
			case errors.Is(l.err, store.ErrUnnamed):
				left = append(left, l)
			case l.err != nil:
				return l.err
			}
		}
		if len(left) == len(d.all) {
			for _, l := range left {
				result.reject("line %d: %v", l.number, l.err)
			}
			return nil
		}
		d.all = left
	}
}

func importLine(ctx context.Context, s *store.Store, update bool, line []byte, result *Imported) error {
	o, err := object.Parse(bytes.Clone(line))
	if err != nil {
		return err
	}
	uuid, ok := o.Text("uuid")
	if !ok {
		return errs.New(errs.Invalid,
			"the object has no uuid: only exports with --secrets can be imported with --secrets")
	}
	// The store omits arrays and records of binaries. These fields belong to them, and to requests.
	for _, field := range []string{mapping.OverflowField, mapping.OwnersField, store.BinariesField,
		store.RequestsField, store.DeletingField, store.ReleasedField} {
		delete(o, field)
	}
	_, err = s.Save(ctx, o, uuid)
	switch {
	case err == nil:
		result.Created++
	case errors.Is(err, errs.Exists) && update:
		if _, err = s.Update(ctx, o, store.UpdateOptions{UUID: uuid}); err == nil {
			result.Updated++
		}
	case errors.Is(err, errs.Exists):
		result.Existing++
		err = nil
	}
	return err
}
