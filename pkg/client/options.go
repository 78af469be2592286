package client

import (
	"github.com/nats-io/nuid"

	"belfry/pkg/wire"
)

// Option configures a request.
type Option func(*options)

type options struct {
	key, actor, trace string
	fields            string
	revision          uint64
}

// WithKey sets the idempotency key of a write: 1 to 200 printable ASCII
// characters. Another write with the same key is a Conflict.
func WithKey(key string) Option { return func(o *options) { o.key = key } }

// WithActor sets the user who causes a request: a uuid, which is recorded in the
// events. It neither grants nor removes permissions.
func WithActor(uuid string) Option { return func(o *options) { o.actor = uuid } }

// WithTrace continues a trace: a W3C traceparent.
func WithTrace(traceparent string) Option { return func(o *options) { o.trace = traceparent } }

// AtRevision makes an update or a deletion conditional on the revision of the
// object: errs.Mismatch otherwise.
func AtRevision(revision uint64) Option { return func(o *options) { o.revision = revision } }

// WithFields has a Get return some fields alone, as "title,address.city", with the uuid.
func WithFields(fields string) Option { return func(o *options) { o.fields = fields } }

func collect(all []Option) options {
	o := options{key: nuid.Next()}
	for _, one := range all {
		one(&o)
	}
	return o
}

func (o options) check(op string) error {
	if !wire.IsWrite(op) {
		return nil
	}
	return wire.ValidateKey(o.key)
}
