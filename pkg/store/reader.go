package store

import (
	"context"

	"golang.org/x/sync/semaphore"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
)

// Stored is an object as a store holds it.
type Stored struct {
	UUID     string
	Revision uint64
	Body     []byte // the encoded object; must not be modified

	// ByCaller says that another caller may receive another Body of the same revision: rules hide fields from some, or
	// an interceptor amends what is read. It is the same for all objects of a store, or it would reveal what is hidden.
	ByCaller bool

	InChunks bool // the backend keeps large arrays of the object in chunks

	Viewed bool // the Body is what a View chose: other requests receive another Body of the same revision
}

// View is what of an object a caller asks for; the zero View is the whole object.
type View struct {
	Fields string      // see ParseProjection
	Expand []Expansion // what the object names is returned with it

	MaxBytes int // of an object with expansions; 0: MaxPageBytes
}

// Object decodes the body.
func (s Stored) Object() (object.Object, error) { return object.Decode(s.Body) }

func toStored(r driver.Record) Stored {
	return Stored{UUID: r.UUID, Revision: r.Revision, Body: r.Body, InChunks: r.InChunks}
}

// reader reads objects by their uuids, and returns the part of one that a caller receives.
type reader struct {
	*core
	events       *events
	interception *interception
	expanding    *semaphore.Weighted // of those that read objects for expansions
}

// get: see Store.Get and Store.Reread.
func (r *reader) get(ctx context.Context, uuid string, announced bool) (Stored, error) {
	record, err := r.find(ctx, uuid)
	if err != nil {
		return Stored{}, err
	}
	call := CallOf(ctx)
	if call.Client {
		if err := r.rules.Allow(ctx, call.caller(), policy.Get, record.Body, nil); err != nil {
			return Stored{}, r.hide(ctx, call, policy.Get, record, nil, err)
		}
	}
	external := call.Client && (call.Origin == event.OriginHTTP || call.Origin == event.OriginBus)
	if announced && external && r.events.announces(event.StoreGet) {
		r.events.announce(call, event.StoreGet, uuid, record.Revision, record.Body)
	}
	return r.amended(ctx, call, record)
}

// getView: see Store.GetView.
func (r *reader) getView(ctx context.Context, uuid string, v View) (Stored, error) {
	projection, err := ParseProjection(v.Fields)
	if err != nil {
		return Stored{}, err
	}
	o, err := r.get(ctx, uuid, true)
	if err != nil || projection == nil && len(v.Expand) == 0 {
		return o, err
	}
	expander, projection := newExpander(v.Expand, projection, newPageBytes(v.MaxBytes).limit)
	whole := o.Body
	o.Body, o.Viewed = projection.Apply(o.Body), true
	if expander == nil {
		return o, nil
	}
	return expander.expandObject(ctx, o, whole)
}

// getAuthorized: see Store.GetAuthorized.
func (r *reader) getAuthorized(ctx context.Context, uuid string, op policy.Op, input object.Object) (Stored, error) {
	record, err := r.find(ctx, uuid)
	if err != nil {
		return Stored{}, err
	}
	if call := CallOf(ctx); call.Client {
		after, err := r.afterMutation(op, record, input)
		if err != nil {
			return Stored{}, err
		}
		if err := r.rules.AllowWrite(ctx, call.caller(), op, record.Body, input, after); err != nil {
			return Stored{}, r.hide(ctx, call, op, record, input, err)
		}
		if err := r.rules.AllowMutation(ctx, call.caller(), record.Body, input, after); err != nil {
			return Stored{}, err
		}
		if op == policy.Get {
			if _, err := r.amended(ctx, call, record); err != nil {
				return Stored{}, err
			}
		}
	}
	return toStored(record), nil
}

// afterMutation returns the object after an update to this input; nil for another operation.
func (r *reader) afterMutation(op policy.Op, record driver.Record, input object.Object) (*policy.After, error) {
	if op != policy.Update || r.links == nil {
		return nil, nil
	}
	stored, err := object.Decode(record.Body)
	return r.links.after(record.UUID, stored, withFields(stored, input)), err
}

// project returns a record, for a client without the fields that never leave the server.
func (r *reader) project(call Call, record driver.Record) Stored {
	o := toStored(record)
	if call.Client {
		o.ByCaller = r.rules.VariesByCaller() && !call.Trusted
		o.Body = r.rules.Visible(o.Body)
	}
	return o
}

// show returns a record as the rules let the caller see it. decoded is its body, nil if it has not been decoded.
// Errors: those of a context that has ended and of a spent budget.
func (r *reader) show(
	ctx context.Context, call Call, fields *policy.FieldReader, record driver.Record, decoded object.Object,
) (Stored, error) {
	o := r.project(call, record)
	var err error
	o.Body, err = r.rules.Readable(ctx, fields, o.Body, record.Body, decoded)
	return o, err
}

// amended returns what a caller who may get an object receives of it: what the rules let them see, once an interceptor
// has amended it.
func (r *reader) amended(ctx context.Context, call Call, record driver.Record) (Stored, error) {
	fields := r.rules.Reader(ctx, call.caller())
	o, err := r.show(ctx, call, fields, record, nil)
	if err != nil {
		return Stored{}, err
	}
	if o, err = r.interception.read(ctx, call, o); err != nil || fields == nil || r.interception.interceptor == nil {
		return o, err
	}
	// The interceptor can't show a field that the rules hide.
	o.Body, err = r.rules.Readable(ctx, fields, o.Body, record.Body, nil)
	return o, err
}

// amendedBody is amended for the rules of fields.
func (r *reader) amendedBody(ctx context.Context, stored object.Object) ([]byte, error) {
	uuid, _ := stored.Text("uuid")
	seen, err := r.amended(ctx, CallOf(ctx), driver.Record{UUID: uuid, Body: stored.Encode()})
	return seen.Body, err
}

// deleted: see Store.Deleted.
func (r *reader) deleted(ctx context.Context, uuid string) (t Tombstone, deleted bool, err error) {
	record, found, err := r.driver.Get(ctx, uuid)
	if !found || !record.Deleted {
		return Tombstone{Revision: record.Revision}, false, err
	}
	t = tombstoneOf(record)
	return t, t.Revision > 0, err
}

// explain: see Store.Explain.
func (r *reader) explain(
	ctx context.Context, op policy.Op, uuid string, input object.Object,
) (access.Explanation, error) {
	var stored object.Object
	if op != policy.Create {
		record, err := r.find(ctx, uuid)
		if err != nil {
			return access.Explanation{}, err
		}
		if stored, err = object.Decode(record.Body); err != nil {
			return access.Explanation{}, err
		}
	}
	// The objects after the write that rules see are made of what the caller can set.
	e, err := r.rules.Explain(ctx, CallOf(ctx).caller(), op, stored, input, func(next object.Object) *policy.After {
		after := r.links.after(uuid, stored, next)
		if after != nil {
			after.Refused = nil // the rule is explained, not the write
		}
		return after
	})
	for reference, target := range r.links.all() {
		if named := r.peers.store(target); named != nil {
			e.Hide(named.core.rules.Hidden, policy.LinkedVariable+"."+reference)
		}
	}
	return e, err
}

// hide returns NotFound in place of an error about an object that a client may know nothing of: see Rules.Hides.
func (r *reader) hide(
	ctx context.Context, call Call, op policy.Op, record driver.Record, input object.Object, err error,
) error {
	if err != nil && r.rules.Hides(ctx, call.caller(), op, record.Body, input) {
		return r.missing(record.UUID)
	}
	return err
}

// reply returns the part of a written record that the caller of the write receives.
// A client receives what a get would return: the right to write is no right to
// read. Where a get would be refused, or can't be decided, it receives the uuid
// and the revision alone. The write has been made, so nothing here fails it.
func (r *reader) reply(ctx context.Context, record driver.Record) Stored {
	call := CallOf(ctx)
	if !call.Client {
		return r.project(call, record)
	}
	if !call.NoGet && r.rules.Allow(ctx, call.caller(), policy.Get, record.Body, nil) == nil {
		if seen, err := r.amended(ctx, call, record); err == nil {
			return seen
		}
	}
	uuid := object.Object{"uuid": object.AppendString(nil, record.UUID)}
	return Stored{UUID: record.UUID, Revision: record.Revision, Body: uuid.Encode(), ByCaller: r.rules.VariesByCaller()}
}

// replyWithoutBody returns the reply to the caller of a mutation: for a client the
// uuid and the revision.
func (r *reader) replyWithoutBody(ctx context.Context, record driver.Record) Stored {
	call := CallOf(ctx)
	if call.Client {
		return Stored{UUID: record.UUID, Revision: record.Revision}
	}
	return r.project(call, record)
}

// writeStatus: see Store.WriteStatus.
func (r *reader) writeStatus(ctx context.Context, uuid, id string) (WriteStatus, error) {
	record, found, err := r.driver.Get(ctx, uuid)
	if err != nil || !found {
		return WriteStatus{UUID: uuid}, err
	}
	if record.Deleted {
		return WriteStatus{UUID: uuid, Revision: record.Revision, Deleted: tombstoneOf(record).Revision}, nil
	}
	o := &Idempotency{ID: id}
	return WriteStatus{
		UUID: uuid, Revision: record.Revision, Exists: true,
		Applied: o.isRecordedIn(record.Body), Incarnation: Incarnation(record.Body), record: record,
	}, nil
}
