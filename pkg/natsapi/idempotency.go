package natsapi

import (
	"context"

	"belfry/pkg/store"
	"belfry/pkg/store/idempotent"
	"belfry/pkg/wire"
)

// ops are the writes as package idempotent has them.
var ops = map[string]idempotent.Op{wire.Save: idempotent.Save, wire.Update: idempotent.Update, wire.Delete: idempotent.Delete}

// idempotent handles a request with a key.
func (v *service) idempotent(ctx context.Context, r *request) (reply, error) {
	limit := min(idempotent.MaxReply, v.maxReply())
	o, err := v.server.keyed.Do(ctx, &idempotent.Request{
		ID: idempotent.KeyID(r.key, v.store.Name()), Fingerprint: r.fingerprint(), Op: ops[r.of.Op], Store: v.store, UUID: r.UUID,
		Perform: func(ctx context.Context, uuid string, i *store.Idempotency) (idempotent.Reply, error) {
			chosen := *r
			chosen.UUID = uuid
			body, err := chosen.perform(ctx, i, limit)
			return idempotent.Reply{Body: body}, err
		},
		Applied: func(ctx context.Context, status store.WriteStatus) idempotent.Reply {
			if r.of.Op == wire.Delete {
				return idempotent.Reply{Body: []byte("{}")}
			}
			return idempotent.Reply{Body: encodeObject(v.store.Reply(r.call(ctx, nil), status), limit)}
		},
		Failed: func(err error) idempotent.Reply {
			p := problemReply(err, r.id)
			return idempotent.Reply{Status: p.status, Text: p.text, Body: p.body}
		},
	})
	return reply{status: o.Status, text: o.Text, body: o.Body}, err
}
