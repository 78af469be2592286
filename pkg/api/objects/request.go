package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"

	"belfry/internal/ratelimit"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/idempotent"
	"belfry/pkg/store/policy"
	"belfry/pkg/wire"
)

// request is one operation on an object, or on a collection for POST: of a request, or of a batch.
type request struct {
	method string
	uuid   string // "" for POST
	match  httpkit.Tags
	none   httpkit.Tags // If-None-Match of GET
	absent bool         // If-None-Match: * of a write
	key    string       // Idempotency-Key, "" for none
	body   object.Object
	view   store.View // of GET
}

var keyHeader = textproto.CanonicalMIMEHeaderKey(wire.HeaderKey)

// newRequest returns a request with the values of its headers. The body is read later.
func newRequest(method, uuid string, h http.Header) (*request, error) {
	q := &request{method: method, uuid: uuid}
	return q, q.readHeaders(h)
}

// readHeaders sets what the headers of a request say.
func (q *request) readHeaders(h http.Header) (err error) {
	if q.method == http.MethodPost && len(h["If-Match"]) > 0 {
		return errs.New(errs.Invalid,
			"If-Match is not supported on POST, which creates an object: change an existing one with PUT or PATCH")
	}
	if q.match, err = httpkit.IfMatch(h); err != nil {
		return err
	}
	if q.method == http.MethodGet {
		q.none, err = httpkit.IfNoneMatch(h)
		return err
	}
	if q.absent, err = httpkit.OnlyIfAbsent(h); err != nil {
		return err
	}
	switch keys := h[keyHeader]; {
	case len(keys) > 1:
		return errs.New(errs.Invalid, "the header %s occurs more than once", wire.HeaderKey)
	case len(keys) == 1:
		q.key = keys[0]
		return wire.ValidateKey(q.key)
	}
	return nil
}

// outcome is the result of a request.
type outcome struct {
	status   int
	uuid     string
	location string
	tag      string // ETag; "" for none
	body     []byte // nil: none
	cache    string // Cache-Control
	replayed bool   // it is the outcome of an earlier request with the same key
}

// failed reports whether the body is a problem document.
func (o outcome) failed() bool { return o.status >= http.StatusBadRequest }

// send replies with the outcome.
func (o outcome) send(x *httpkit.Exchange) {
	if o.replayed {
		x.SetHeader(httpkit.Replayed, "true")
	}
	if o.failed() {
		x.SendProblem(o.status, o.body)
		return
	}
	x.SetHeader("Cache-Control", o.cache)
	if o.location != "" {
		x.SetHeader("Location", o.location)
	}
	if o.tag != "" {
		x.SetHeader("Etag", o.tag)
	}
	if o.body == nil {
		x.WriteHeader(o.status)
		return
	}
	x.Send(o.status, httpkit.JSON, o.body)
}

// read gets an object.
func (r *resource) read(ctx context.Context, q *request) (outcome, error) {
	stored, err := r.store.GetView(ctx, q.uuid, q.view)
	if err != nil {
		return outcome{}, err
	}
	if q.match.Given && !q.match.MatchObject(stored) {
		return outcome{}, q.match.Mismatch()
	}
	o := outcome{status: http.StatusOK, uuid: stored.UUID, tag: httpkit.ETag(stored), body: stored.Body,
		cache: httpkit.Revalidate}
	if q.none.Given && q.none.MatchView(stored) {
		o.status, o.body = http.StatusNotModified, nil
	}
	return o, nil
}

// execute makes a write, once for an Idempotency-Key. The store decides which fields of the object the client may read.
func (r *resource) execute(ctx context.Context, x *httpkit.Exchange, q *request) (outcome, error) {
	if q.absent && q.method != http.MethodPost {
		// If-None-Match: * fails if the object exists, and updates and deletes require that it exists. Only a client
		// that may make the write learns that it exists.
		if err := r.check(ctx, q); err != nil {
			return outcome{}, err
		}
		return outcome{}, errs.New(errs.Mismatch, "If-None-Match: * does not hold, since the object exists")
	}
	ctx = r.withoutGet(ctx, x, q)
	if q.key != "" {
		return r.executeOnce(ctx, x, q)
	}
	stored, err := r.act(ctx, q, q.uuid)
	if err != nil {
		return outcome{}, err
	}
	return r.written(q, stored), nil
}

// act makes a write of the object with a uuid; "" for POST, unless the uuid is already chosen.
func (r *resource) act(ctx context.Context, q *request, uuid string) (stored store.Stored, err error) {
	switch q.method {
	case http.MethodPost:
		stored, err = r.store.Save(ctx, q.body, uuid)
		if q.absent && errors.Is(err, errs.Exists) {
			err = errs.Wrap(err, errs.Mismatch, "If-None-Match: * does not hold, since the uuid is taken")
		}
	case http.MethodDelete:
		stored.UUID = uuid
		err = q.match.Attempt(func(ifRevision uint64) error { return r.store.Delete(ctx, uuid, ifRevision) })
	default:
		err = q.match.Attempt(func(ifRevision uint64) error {
			stored, err = r.store.Update(ctx, q.body,
				store.UpdateOptions{UUID: uuid, If: ifRevision, Patch: q.method == http.MethodPatch})
			return err
		})
	}
	return stored, err
}

// written returns the outcome of a write. stored has the parts of the object that the client receives.
func (r *resource) written(q *request, stored store.Stored) outcome {
	o := outcome{status: http.StatusOK, uuid: stored.UUID, cache: httpkit.NoStore}
	switch q.method {
	case http.MethodDelete:
		o.status = http.StatusNoContent
		return o
	case http.MethodPost:
		o.status, o.location = http.StatusCreated, r.url+"/"+stored.UUID
	}
	o.tag, o.body = httpkit.ETag(stored), stored.Body
	return o
}

// reread returns the outcome of a write whose consequences are applied: with the object as it is then.
func (r *resource) reread(ctx context.Context, x *httpkit.Exchange, o outcome) outcome {
	if o.body == nil || o.failed() || !r.offersGet(x, o.uuid) {
		return o
	}
	// An error means that the object was deleted meanwhile, or that the client may no longer read it.
	if current, err := r.store.Reread(ctx, o.uuid); err == nil {
		o.tag, o.body = httpkit.ETag(current), current.Body
	}
	return o
}

// offersGet reports whether the client has a route to get an object: there is one, and the rule of an API key allows
// it.
func (r *resource) offersGet(x *httpkit.Exchange, uuid string) bool {
	if r.restrict.Get {
		return false
	}
	if session, err := r.calls.Session(x); err == nil && (session == nil || session.Key == nil) {
		return true
	}
	return r.calls.Allow(x, http.MethodGet, r.url+"/"+uuid) == nil
}

// withoutGet sets in the call whether the client lacks a route to get the object. The uuid of a new object may not be
// known yet.
func (r *resource) withoutGet(ctx context.Context, x *httpkit.Exchange, q *request) context.Context {
	uuid := q.uuid
	if q.method == http.MethodPost {
		uuid, _ = q.body.Text("uuid")
	}
	if r.offersGet(x, uuid) {
		return ctx
	}
	call := store.CallOf(ctx)
	call.NoGet = true
	return store.WithCall(ctx, call)
}

// uuidAlone is the body of a reply without the object.
func uuidAlone(uuid string) []byte {
	return object.Object{"uuid": object.AppendString(nil, uuid)}.Encode()
}

var ops = map[string]idempotent.Op{
	http.MethodPost: idempotent.Save, http.MethodPut: idempotent.Update, http.MethodPatch: idempotent.Update,
	http.MethodDelete: idempotent.Delete,
}

// executeOnce makes a write with a key. Each user has keys of their own. All clients that are not logged in share
// theirs.
func (r *resource) executeOnce(ctx context.Context, x *httpkit.Exchange, q *request) (outcome, error) {
	if r.keyed == nil {
		return outcome{}, errs.New(errs.Invalid, "%s is not supported here", wire.HeaderKey)
	}
	actor := ""
	if call := store.CallOf(ctx); call.Actor != nil {
		actor = *call.Actor
	}
	uuid := q.uuid
	if q.method == http.MethodPost {
		uuid, _ = q.body.Text("uuid") // Check reports an invalid uuid
	}
	stored, err := r.keyed.Do(ctx, &idempotent.Request{
		ID: idempotent.KeyID(q.key, r.store.Name(), "http", actor),
		Fingerprint: idempotent.Fingerprint(q.method, q.uuid, q.match.String(), fmt.Sprint(q.absent),
			string(q.body.Encode())),
		Op: ops[q.method], Store: r.store, UUID: uuid, Client: r.keeps(x, actor),
		Check: func(ctx context.Context) error { return r.check(ctx, q) },
		Perform: func(ctx context.Context, uuid string, i *store.Idempotency) (idempotent.Reply, error) {
			call := store.CallOf(ctx)
			call.Idempotency = i
			stored, err := r.act(store.WithCall(ctx, call), q, uuid)
			return r.toKeep(q, stored), err
		},
		Applied: func(ctx context.Context, status store.WriteStatus) idempotent.Reply {
			if q.method == http.MethodDelete {
				return r.toKeep(q, store.Stored{UUID: status.UUID})
			}
			return r.toKeep(q, r.store.Reply(ctx, status))
		},
		Failed: func(err error) idempotent.Reply {
			status, document := x.Problem(err)
			return idempotent.Reply{Status: status, Body: document}
		},
	})
	if err != nil {
		return outcome{}, err
	}
	o := r.written(q, store.Stored{UUID: stored.UUID})
	o.status, o.tag, o.replayed = stored.Status, stored.Tag, stored.Replayed
	switch {
	case o.failed():
		o.body = stored.Body
	case q.method == http.MethodDelete:
	case stored.Replayed && !r.offersGet(x, stored.UUID): // another API key of the user made the request
		o.body = uuidAlone(stored.UUID)
	default:
		o.body = stored.Body
	}
	return o, nil
}

// keeps returns for which client a reply is kept: the user, or the network address of a client that is not logged in;
// "" for clients without limits.
func (r *resource) keeps(x *httpkit.Exchange, user string) string {
	switch {
	case r.calls.Exempt(x):
		return ""
	case user != "":
		return "user " + user
	default:
		return "address " + ratelimit.Key(x.Address)
	}
}

// toKeep returns the outcome of a write as it is stored with the key: without an object that is too large.
func (r *resource) toKeep(q *request, written store.Stored) idempotent.Reply {
	o := r.written(q, written)
	switch {
	case o.body == nil:
		o.body = []byte("{}")
	case len(o.body) > idempotent.MaxReply:
		o.body = uuidAlone(o.uuid)
	}
	return idempotent.Reply{Status: o.status, Tag: o.tag, Body: o.body}
}

// check returns the error of a write that is refused because of its content. It runs before the key is stored, so that
// forbidden requests do not fill the store of requests.
func (r *resource) check(ctx context.Context, q *request) error {
	call := store.CallOf(ctx)
	call.RuleBudget = policy.NewBudget()
	ctx = store.WithCall(ctx, call)
	switch q.method {
	case http.MethodPost:
		err := r.store.Check(ctx, q.body, "")
		if errors.Is(err, errs.Taken) {
			return nil // allowed and valid: the reply of the write is kept, even if the unique value is free later
		}
		return err
	case http.MethodDelete:
		return r.store.CheckDelete(ctx, q.uuid)
	default:
		return r.store.CheckUpdate(ctx, q.body, store.UpdateOptions{UUID: q.uuid, Patch: q.method == http.MethodPatch})
	}
}
