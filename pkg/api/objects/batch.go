package objects

import (
	"context"
	"net/http"
	"strconv"

	"belfry/internal/baseurl"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/pagememory"
	"belfry/pkg/problem"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// maxOperations is how many operations a batch can have.
const maxOperations = 100

// operation is an operation of a batch.
type operation struct {
	resource *resource
	request  *request
	err      error // why it can't be executed; the error is its result
}

// result is the result of an operation.
type result struct {
	outcome
	retryAfter string
}

// batch is POST of a batch. Its operations are executed one after the other, each as if it had been
// requested alone.
func (all *Resources) batch(x *httpkit.Exchange) error {
	if err := withoutConditions(x.Request.Header); err != nil {
		return err
	}
	// The body is read only if the client may send a batch.
	ctx, err := all.Calls.Client(x)
	if err != nil {
		return err
	}
	body, err := x.ReadObject(httpkit.JSON)
	if err != nil {
		return err
	}
	given, err := parseBatch(body)
	if err != nil {
		return err
	}
	operations := make([]operation, len(given))
	for i, raw := range given {
		operations[i] = all.parse(x, raw)
	}
	memory, err := all.Pages.Reserve(ctx, x.Address, all.expected(operations))
	if err != nil {
		return err
	}
	defer memory.Release()
	results := make([]result, len(operations))
	ctx, applied, err := all.Calls.Write(x, func(ctx context.Context) error {
		room := memory.Page()
		for i, o := range operations {
			results[i] = all.execute(ctx, x, i, o, &room)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if applied {
		reread(ctx, x, operations, results, memory)
	}
	reply := encodeResults(results, x.Base())
	memory.Resize(len(reply))
	x.SetHeader("Cache-Control", httpkit.NoStore)
	sendPage(x, reply)
	return nil
}

// withoutConditions refuses headers that belong to an operation: ignoring a condition would break the client's
// expectation.
func withoutConditions(h http.Header) error {
	for _, name := range []string{keyHeader, "If-Match", "If-None-Match"} {
		if len(h[name]) > 0 {
			return errs.New(errs.Invalid, "%s is not supported for a batch: name it in the headers of each operation",
				name)
		}
	}
	return nil
}

// expected estimates the size of the reply in bytes.
func (all *Resources) expected(operations []operation) int {
	bytes := 0
	for _, o := range operations {
		if o.err == nil {
			bytes += o.resource.sizes.Expected(1, smallReply)
		}
	}
	return bytes
}

// smallReply is the expected size of an object's reply if the store has not been listed yet.
const smallReply = 4 << 10

// execute executes operation i as if it had been requested alone. room is the remaining limit for the bodies of
// results, in bytes.
func (all *Resources) execute(ctx context.Context, x *httpkit.Exchange, i int, o operation, room *int) result {
	out, err := all.try(ctx, x, o)
	if err == nil && len(out.body) > *room {
		out, err = out.shortened(o.request)
	}
	res := result{outcome: out}
	if err != nil {
		res.outcome = outcome{}
		res.status, res.body = x.ProblemOfPart(i+1, err)
		if httpkit.HasRetryAfter(res.status) {
			res.retryAfter = problem.RetryAfter(err)
		}
		return res
	}
	*room -= len(out.body)
	return res
}

// try executes an operation. A panic fails only this operation, so the earlier results are still sent.
func (all *Resources) try(ctx context.Context, x *httpkit.Exchange, o operation) (out outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errs.Panicked(p)
		}
	}()
	if o.err != nil {
		return outcome{}, o.err
	}
	if err := ctx.Err(); err != nil {
		return outcome{}, err // the client has disconnected
	}
	act := httpkit.Write
	if o.request.method == http.MethodGet {
		act = httpkit.Read
	}
	if err := all.Calls.Admit(x, act, x.Header()); err != nil {
		return outcome{}, err
	}
	call := store.CallOf(ctx)
	call.RuleBudget = policy.NewBudget()
	ctx = store.WithCall(ctx, call)
	if act == httpkit.Read {
		return o.resource.read(ctx, o.request)
	}
	if out, err = o.resource.execute(ctx, x, o.request); out.replayed {
		x.MarkReplayed()
	}
	return out, err
}

// shortened returns an outcome without its object, which exceeds the limit of the reply.
func (o outcome) shortened(q *request) (outcome, error) {
	switch {
	case q.method == http.MethodGet:
		return outcome{}, errs.New(errs.TooLarge,
			"the objects of this batch are too large for one reply: get this object in a request of its own")
	case !o.failed():
		o.body = uuidAlone(o.uuid)
	}
	return o, nil
}

// reread replaces the objects of writes by their state after the work that the writes caused, while the memory limit
// permits it.
func reread(ctx context.Context, x *httpkit.Exchange, operations []operation, results []result,
	memory *pagememory.Reservation) {
	room := memory.Page()
	for _, res := range results {
		room -= len(res.body)
	}
	for i, o := range operations {
		if o.err != nil || o.request.method == http.MethodGet {
			continue
		}
		now := o.resource.reread(ctx, x, results[i].outcome)
		if grown := len(now.body) - len(results[i].body); grown <= max(room, 0) {
			room -= grown
			results[i].outcome = now
		}
	}
}

// encodeResults returns the body of the reply.
func encodeResults(results []result, base baseurl.URL) []byte {
	body := []byte(`{"results":[`)
	for i, res := range results {
		if i > 0 {
			body = append(body, ',')
		}
		body = strconv.AppendInt(append(body, `{"status":`...), int64(res.status), 10)
		body = res.appendHeaders(body, base)
		if res.body != nil {
			body = append(append(body, `,"body":`...), res.body...)
		}
		body = append(body, '}')
	}
	return append(body, `]}`...)
}

func (r result) appendHeaders(body []byte, base baseurl.URL) []byte {
	replayed := ""
	if r.replayed {
		replayed = "true"
	}
	before := len(body)
	for _, h := range [][2]string{{"ETag", r.tag}, {httpkit.Replayed, replayed}, {"Location", base.Below(r.location)},
		{"Retry-After", r.retryAfter}} {
		if h[1] == "" || r.failed() && h[0] == "Location" {
			continue
		}
		if len(body) == before {
			body = append(body, `,"headers":{`...)
		} else {
			body = append(body, ',')
		}
		body = object.AppendString(append(object.AppendString(body, h[0]), ':'), h[1])
	}
	if len(body) > before {
		body = append(body, '}')
	}
	return body
}
