package schema

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/qri-io/jsonpointer"
	"github.com/qri-io/jsonschema"

	"belfry/internal/smallfile"
	"belfry/pkg/errs"
)

// Schema validates documents. It is safe for concurrent use.
type Schema struct {
	form normalForm
	text []byte
	// The library's schemas write to themselves during validation, so each run has
	// an instance of its own. One is kept for as long as the schema is: making one
	// takes longer than many runs, and the garbage collector empties the pool.
	kept atomic.Pointer[instance]
	more sync.Pool
}

// Option enables further work of a schema besides validation.
type Option uint8

// The options of a schema.
const (
	// Formats has format asserted.
	Formats Option = iota
	// Defaults has Fill set values of default.
	Defaults
)

// instance is a schema of the library, for one run at a time.
type instance struct {
	schema *jsonschema.Schema
	run    run
}

// Read returns the text of a schema file: a regular one, of the largest size that a schema has.
func Read(path string) ([]byte, error) { return smallfile.Read(path, maxSchemaBytes) }

// Load reads and compiles the JSON Schema file at path. A file that cannot be read
// is errs.Invalid; a schema that cannot be used is a *RefusedError.
func Load(path string, options ...Option) (*Schema, error) {
	data, err := Read(path)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "schema %s cannot be read", path)
	}
	return Compile(path, data, options...)
}

// Compile is Load for a file's content; messages call it name.
func Compile(name string, data []byte, options ...Option) (s *Schema, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			s, err = nil, errs.Wrap(fmt.Errorf("panic: %v", fault), errs.Internal, "schema %s cannot be compiled", name)
		}
	}()
	registerKeywords()
	root, err := parseSource(name, data)
	if err != nil {
		return nil, err
	}
	refused := &refusals{name: name}
	if root.file.draft = declaredDraft(root, refused); len(refused.list) > 0 {
		return nil, refused.err()
	}
	x := newIndex(refused)
	x.addFile(root, baseURI)
	form, err := normalize(x, root, options)
	if err != nil {
		return nil, err
	}
	s = &Schema{form: form, text: data}
	s.form.outline.name = name
	first, err := form.instance()
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "schema %s cannot be compiled", name)
	}
	s.kept.Store(first)
	return s, s.checkDefaults(refused)
}

func declaredDraft(root *node, refused *refusals) draft {
	k := root.get("$schema")
	if k == nil {
		return draft2019
	}
	d, known := draftOf(k.text)
	if !known {
		advice := fmt.Sprintf("declare %q, %q or %q, or remove it for draft 2019-09", uri2020, uri2019, uri07+"#")
		if strings.HasPrefix(canonicalURI(k.text), olderDrafts) {
			advice = fmt.Sprintf("declare %q, and write id as $id, and exclusiveMaximum and exclusiveMinimum "+
				"as numbers", uri07+"#")
		}
		refused.add(k, "$schema", fmt.Sprintf("the draft %s is not supported", k.raw()), advice)
	}
	return d
}

// instance makes the library's schema of the normal form.
func (f normalForm) instance() (*instance, error) {
	i := &instance{schema: &jsonschema.Schema{}}
	if err := json.Unmarshal(f.text, i.schema); err != nil {
		return nil, err
	}
	defs, ok := i.schema.JSONProp("$defs").(*jsonschema.Defs)
	if !ok {
		return nil, fmt.Errorf("the library gave no $defs")
	}
	i.run.defs = *defs
	return i, nil
}

// Validate validates a whole JSON document. It returns nil if the document is valid.
// Otherwise the error is or wraps an *errs.Error:
//
//	Invalid    the document does not match, with a pointer, a message and a keyword for each place (at most 100);
//	           or it is not JSON, or takes too long to validate
//	TooLarge   the document is too large
//	Canceled   ctx ended first
//	Internal   without a result, for a bug
func (s *Schema) Validate(ctx context.Context, doc []byte) error {
	return s.ValidatePart(ctx, doc, nil)
}

// ValidatePart is Validate of an object without some of its members: those for which present holds count as being
// there, with any value. It may hold for members that the object has: properties judge them where they declare them,
// and otherwise they are allowed. If present is nil, no member is left out.
func (s *Schema) ValidatePart(ctx context.Context, doc []byte, present func(name string) bool) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = errs.Wrap(fmt.Errorf("panic: %v", fault), errs.Internal, "the document could not be validated")
		}
	}()
	v, err := decode(doc)
	if err != nil {
		return err
	}
	i, err := s.take()
	if err != nil {
		return errs.Wrap(err, errs.Internal, "the document could not be validated")
	}
	i.run.begin(ctx, i.schema, s.form.tracks, len(doc))
	i.run.present = present
	i.run.apply(i.schema, v) //nolint:contextcheck // the run is the context, and holds ctx
	err = i.run.result()
	i.run.Context, i.run.present = nil, nil
	s.put(i)
	return err
}

// Text returns the schema as it was written. The caller must not change it.
func (s *Schema) Text() []byte { return s.text }

// Digest identifies the requirements of the schema: schemas with equal digests give equal results for any document.
func (s *Schema) Digest() string {
	sum := sha256.Sum256(s.form.text)
	return hex.EncodeToString(sum[:])
}

// take returns an instance that no other run has.
func (s *Schema) take() (*instance, error) {
	if i := s.kept.Swap(nil); i != nil {
		return i, nil
	}
	if i, ok := s.more.Get().(*instance); ok {
		return i, nil
	}
	return s.form.instance()
}

// put makes an instance available to the next run.
func (s *Schema) put(i *instance) {
	if !s.kept.CompareAndSwap(nil, i) {
		s.more.Put(i)
	}
}

// begin prepares the run for a document of size bytes. The state of a run that
// panicked never gets here: its instance is not put back.
func (r *run) begin(ctx context.Context, root *jsonschema.Schema, tracks bool, size int) {
	if r.state == nil {
		r.state = jsonschema.NewValidationState(root)
		r.state.InstanceLocation = &jsonpointer.Pointer{}
	}
	*r = run{
		Context: ctx, defs: r.defs, state: r.state,
		path: r.path[:0], fields: r.fields[:0], scope: r.scope[:0],
		budget: 1_000_000 + 16*size,
	}
	if tracks {
		r.seen = &evaluated{}
	}
}
