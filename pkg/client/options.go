package client

import (
	"github.com/nats-io/nuid"

	"belfry/pkg/natsapi/wire"
)

// Option is something that a request says besides what it asks for.
type Option func(*options)

type options struct {
	key, actor, trace string
	revision          uint64
}

// WithKey gives a write its idempotency key: 1 to 200 printable ASCII
// characters. Another write with the same key is a Conflict.
func WithKey(key string) Option { return func(o *options) { o.key = key } }

// WithActor says which user is behind a request: a uuid, which goes into the
// events. It gives no rights and takes none.
func WithActor(uuid string) Option { return func(o *options) { o.actor = uuid } }

// WithTrace carries on a trace: a W3C traceparent.
func WithTrace(traceparent string) Option { return func(o *options) { o.trace = traceparent } }

// AtRevision lets an update or a deletion take place only while the object is at
// a revision: Mismatch otherwise.
func AtRevision(revision uint64) Option { return func(o *options) { o.revision = revision } }

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
