package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// Expansion is a field whose values name objects of another store, which are returned with the objects of a page. The
// field expandedField of an object has them under the name of the field: the object that it names, or an array of
// those. Its name begins with an underscore, like all fields that clients can't write. belfry ignores such fields in
// requests.
type Expansion struct {
	Field string
	From  *Store

	// Allow returns the error of an object that the caller may not get, even if the rules of From allow it; nil: no
	// such object exists.
	Allow func(uuid string) error
}

const expandedField = "_expanded"

// Limits of the expansions of a page.
const (
	MaxExpandReads = 500      // objects; one that several objects name counts once for each Expansion
	maxExpandBytes = 16 << 20 // of these objects as they are stored, after which no more are read

	maxExpandReaders = 8 // that read from one store at the same time: an object can have more than a MiB
)

// ParseExpand reads the fields to expand, separated by commas; known are those that can be.
func ParseExpand(text string, known map[string]*Store) (all []Expansion, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		switch {
		case known[name] == nil && len(known) == 0:
			return nil, errs.New(errs.Invalid,
				"expand: this store has no field that names objects which can be read: none "+
					"is the key of a mapping, or a reference, to a store whose objects can be read")
		case known[name] == nil:
			return nil, errs.New(errs.Invalid, "expand: %.64q can't be expanded; what can be is %s",
				name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case slices.ContainsFunc(all, func(e Expansion) bool { return e.Field == name }):
			return nil, errs.New(errs.Invalid, "expand: %s is named twice", name)
		}
		all = append(all, Expansion{Field: name, From: known[name]})
	}
	return all, nil
}

// reference is an object that an Expansion leads to.
type reference struct {
	expansion int
	uuid      string
}

// expander reads the objects that the objects of a page name.
type expander struct {
	expansions  []Expansion
	projections []*Projection // of what each leads to
	found       map[reference][]byte
	read        chunks
	bytes       int // of what was found
	limit       int // bytes that the page may have
}

// newExpander returns nil when nothing is to be expanded, and the projection of the objects themselves: of a field that
// is expanded it has the value, as its parts are chosen of the object that it names.
func newExpander(expansions []Expansion, p *Projection, limit int) (*expander, *Projection) {
	if len(expansions) == 0 {
		return nil, p
	}
	e := &expander{expansions: expansions, found: map[reference][]byte{}, limit: limit}
	for _, one := range expansions {
		e.projections = append(e.projections, p.nested(one.Field))
		p = p.withWhole(one.Field)
	}
	return e, p
}

// references returns the references of an object, as its reader sees it.
func (e *expander) references(body []byte) (all []reference) {
	for i, one := range e.expansions {
		for _, uuid := range KeyTargets(object.Field(body, one.Field)) {
			all = append(all, reference{i, uuid})
		}
	}
	return all
}

// unread adds those references that have not been read to others, each once; seen has those that were.
func (e *expander) unread(others, references []reference, seen map[reference]bool) []reference {
	for _, r := range references {
		if _, read := e.found[r]; !read && !seen[r] {
			seen[r] = true
			others = append(others, r)
		}
	}
	return others
}

// fetchAll reads references that have not been read, until they are too large.
func (e *expander) fetchAll(ctx context.Context, all []reference) error {
	unread := e.unread(nil, all, map[reference]bool{})
	for len(unread) > 0 && e.bytes <= e.limit && e.read.bytes <= maxExpandBytes {
		n := min(e.chunkSize(), len(unread))
		if err := e.fetch(ctx, unread[:n]); err != nil {
			return err
		}
		unread = unread[n:]
	}
	return nil
}

// isComplete reports whether all references have been read.
func (e *expander) isComplete(all []reference) bool {
	return !slices.ContainsFunc(all, func(r reference) bool { _, read := e.found[r]; return !read })
}

// fetch reads references that have not been read. In their order it keeps as many as the page may have.
func (e *expander) fetch(ctx context.Context, all []reference) error {
	found := make([]map[string][]byte, len(e.expansions))
	for i, one := range e.expansions {
		var uuids []string
		for _, r := range all {
			if r.expansion != i {
				continue
			}
			allowed, err := one.allows(r.uuid)
			if err != nil {
				return err
			}
			if allowed {
				uuids = append(uuids, r.uuid)
			}
		}
		if len(uuids) == 0 {
			continue
		}
		read, bytes, err := one.From.reader.getMany(ctx, uuids, e.projections[i])
		if err != nil {
			return err
		}
		found[i] = read
		e.read.add(len(uuids), bytes)
	}
	for _, r := range all {
		if e.bytes > e.limit {
			break
		}
		body := found[r.expansion][r.uuid]
		e.bytes += len(body)
		e.found[r] = body
	}
	return nil
}

// allows reports whether the caller may get an object as far as Allow says.
func (e Expansion) allows(uuid string) (bool, error) {
	if e.Allow == nil {
		return true, nil
	}
	err := e.Allow(uuid)
	if err != nil && isRefused(err) {
		return false, nil
	}
	return err == nil, err
}

// chunkSize returns how many objects to read next: about as many as the page still takes, and few where they are large.
func (e *expander) chunkSize() int {
	n := e.read.next()
	if e.bytes > 0 {
		n = min(n, max(0, e.limit-e.bytes)*e.read.objects/e.bytes)
	}
	return max(1, n)
}

// appendExpanded returns an encoded object with the objects that it names.
func (e *expander) appendExpanded(body []byte, references []reference, whole []byte) []byte {
	out := append(slices.Clone(body[:len(body)-1]), `,"`+expandedField+`":{`...)
	first := true
	for i, one := range e.expansions {
		value := object.Field(whole, one.Field)
		isList := len(value) > 0 && value[0] == '['
		var found [][]byte
		for _, r := range references {
			if body := e.found[r]; r.expansion == i && body != nil {
				found = append(found, body)
			}
		}
		if len(found) == 0 && !isList {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = append(object.AppendString(out, one.Field), ':')
		if !isList {
			out = append(out, found[0]...)
			continue
		}
		out = append(out, '[')
		for n, body := range found {
			if n > 0 {
				out = append(out, ',')
			}
			out = append(out, body...)
		}
		out = append(out, ']')
	}
	return append(out, "}}"...)
}

// expandObject expands a single object, of which whole is what its reader sees.
func (e *expander) expandObject(ctx context.Context, o Stored, whole []byte) (Stored, error) {
	references := e.references(whole)
	if len(references) > MaxExpandReads {
		return Stored{}, errTooManyReads(o.UUID)
	}
	if err := e.fetchAll(ctx, references); err != nil {
		return Stored{}, err
	}
	if o.Body = e.appendExpanded(o.Body, references, whole); !e.isComplete(references) || len(o.Body) > e.limit {
		return Stored{}, e.tooLarge(o.UUID)
	}
	return o, nil
}

// unexpanded is an object of a page before the objects that it names are added.
type unexpanded struct {
	whole      []byte // as its reader sees it, without a projection
	references []reference
	place      []byte // of the list, before the object
}

// expand adds the objects that those of a page name. The page ends before the object for which more would be read than
// may be, or with which it would be too large.
func (p *listPage) expand(ctx context.Context) error {
	e, objects := p.expander, p.list.Objects
	size := p.empty
	for next := 0; next < len(objects); {
		end, unread, seen := next, []reference(nil), map[reference]bool{}
		for ; end < len(objects); end++ {
			more := e.unread(unread, p.unexpanded[end].references, seen)
			if end > next && len(more) > e.chunkSize() || e.read.objects+len(more) > MaxExpandReads {
				break
			}
			unread = more
		}
		if end == next {
			return p.endBefore(next, errTooManyReads(objects[next].UUID))
		}
		if err := e.fetchAll(ctx, unread); err != nil {
			if errors.Is(err, policy.ErrBudget) {
				return p.endBefore(next, err)
			}
			return err
		}
		for ; next < end; next++ {
			o, of := &objects[next], p.unexpanded[next]
			alone := len(o.Body) > e.limit // an object of any size may be a page by itself
			o.Body, o.Viewed = e.appendExpanded(o.Body, of.references, of.whole), true
			if !e.isComplete(of.references) || !size.add(*o) || len(o.Body) > e.limit && !alone {
				return p.endBefore(next, e.tooLarge(o.UUID))
			}
		}
	}
	return nil
}

// endBefore ends a page before one of its objects. For the first one the error is returned.
func (p *listPage) endBefore(at int, err error) error {
	if at == 0 {
		return err
	}
	p.list.Objects, p.list.Next = p.list.Objects[:at], p.scan.lister.cursor(p.scan.plan, p.unexpanded[at].place)
	return nil
}

func errTooManyReads(uuid string) error {
	return errs.New(errs.Invalid, "expand: the object %s alone names more than %d objects: expand fewer fields",
		uuid, MaxExpandReads)
}

// tooLarge returns the error of an object that is too large with those that it names.
func (e *expander) tooLarge(uuid string) error {
	if e.bytes <= e.limit && e.read.bytes > maxExpandBytes {
		return errs.New(errs.TooLarge,
			"expand: the objects that %s names have more than %d bytes, which is more than one "+
				"request reads: get them one by one", uuid, maxExpandBytes)
	}
	return errs.New(errs.TooLarge, "expand: the object %s with those that it names has more than %d bytes: choose "+
		"fields of these, as in fields=author.name", uuid, e.limit)
}
