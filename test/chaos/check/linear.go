package check

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"belfry/test/chaos/history"
	"belfry/test/kit"
)

// linear checks that the requests about each object, reads and conditional writes, can be put into one
// order in which every reply is right, and in which a request that returned before another was sent comes
// before it. Revisions must grow in that order.
func linear(s *history.Segment, r *Report) {
	logged := chains(s, nil)
	ops := byObject(slices.Concat(s.Carried, s.Ops))
	for _, o := range s.Objects() {
		store := history.StoreOf(o.Store)
		if len(ops[o]) == 0 || store.Name == "" || unseenUndo(s, ops[o]) {
			continue
		}
		requests := resolve(s, ops[o], logged[o])
		switch search(model(store, s.Start[o], unseenCascade(s, o), s.Loss != nil), requests, s.Loss != nil) {
		case porcupine.Illegal:
			r.add(NotLinearizable, o, "from %s on, no order explains:%s", stateOf(s.Start[o]), describe(requests))
		case porcupine.Unknown:
			r.add(Undecided, o, "no order of %d requests was found within %s, and none was excluded", len(requests),
				kit.Limit)
		}
	}
}

// search looks for an order of requests. Without a log any request of unknown outcome may have been made, and the
// search through all of them takes too long: so it first tries orders in which those were not made that left no trace.
// Such an order is an explanation like any other. Which search ends is not known before, so the time of each grows.
func search(m porcupine.Model, requests []history.Op, logLost bool) porcupine.CheckResult {
	if !logLost {
		return porcupine.CheckOperationsTimeout(m, operations(requests), kit.Limit)
	}
	for each := firstSearch; ; each *= 4 {
		for _, fields := range [][]string{{"title"}, {"title", "value", "note"}} {
			if porcupine.CheckOperationsTimeout(m, operations(traced(requests, fields)), each) == porcupine.Ok {
				return porcupine.Ok
			}
		}
		if found := porcupine.CheckOperationsTimeout(m, operations(requests), each); found != porcupine.Unknown ||
			each > kit.Limit {
			return found
		}
	}
}

// firstSearch is the time that the first search for an order has.
const firstSearch = 10 * time.Second

// traced leaves out writes of unknown outcome whose fields of these names have values that no reply has.
func traced(requests []history.Op, fields []string) []history.Op {
	seen := map[string]bool{}
	each := func(f history.Fields, found func(value string)) {
		for _, name := range fields {
			if value, ok := f[name]; ok {
				found(name + value)
			}
		}
	}
	for _, op := range requests {
		if op.Outcome == history.Done && op.Body != nil {
			each(history.FieldsOf(op.Body), func(value string) { seen[value] = true })
		}
	}
	return slices.DeleteFunc(slices.Clone(requests), func(op history.Op) bool {
		if op.Outcome != history.Unknown || len(op.Fields) == 0 {
			return false
		}
		trace := false
		each(op.Fields, func(value string) { trace = trace || seen[value] })
		return !trace
	})
}

// resolve completes the requests with what the log says: which writes of unknown outcome were made, and
// which deletions workers made.
func resolve(s *history.Segment, ops []history.Op, c *chain) []history.Op {
	made := map[string][]history.Event{}
	var requests []history.Op
	if c != nil {
		for _, e := range c.events {
			switch {
			case byClient(e):
				made[e.Ctx.Request] = append(made[e.Ctx.Request], e)
			case e.Deleted():
				requests = append(requests, history.Op{
					Object: e.Object(), Kind: history.Cascade, Return: history.Never, Outcome: history.Done,
					Revision: e.Revision,
				})
			case clears(e):
				requests = append(requests, history.Op{
					Object: e.Object(), Kind: history.Clear, Return: history.Never, Outcome: history.Done,
					Revision: e.Revision,
					Fields:   history.Fields{history.StoreOf(e.Store).Cleared: "null"},
				})
			}
		}
	}
	for _, op := range ops {
		taken, writes := attempts(op, made[op.Request])
		for _, u := range taken {
			requests = append(requests, u.requests(op)...)
		}
		var e history.Event
		written := len(writes) > 0
		if written {
			e = writes[len(writes)-1]
		}
		if written && op.IfMatch != 0 && onlyMarkedSince(op, e, c) {
			op.IfMatch = 0
		}
		if written && staysRefused(op, writes, c) {
			op.Outcome = history.Unknown
		}
		switch {
		case !op.Kind.Writes() && op.Outcome == history.Unknown:
			continue
		case op.Outcome == history.Unknown && !written && !before(s, op):
			continue // it was not made; a read that saw it has no explanation
		case op.Kind.Writes() && op.Outcome != history.Refused && written:
			op.Outcome, op.Revision = history.Done, e.Revision
			if !e.Deleted() && !e.ObjectOmitted {
				op.Body = e.Envelope.Object
			}
		}
		requests = append(requests, op)
	}
	tighten(requests)
	return requests
}

// tighten narrows the times of writes whose return is not known: a write takes effect after the call of
// every write of a lower revision, and before the return of every one of a higher revision.
func tighten(ops []history.Op) {
	var known []int
	for i, op := range ops {
		if op.Outcome == history.Done && op.Revision != 0 {
			known = append(known, i)
		}
	}
	slices.SortStableFunc(known, func(a, b int) int { // a write before those that read it
		return cmp.Or(cmp.Compare(ops[a].Revision, ops[b].Revision), reads(ops[a])-reads(ops[b]))
	})
	before := int64(math.MinInt64)
	for _, i := range known {
		if open(ops[i]) {
			ops[i].Call = max(ops[i].Call, before)
		}
		before = max(before, ops[i].Call)
	}
	after := int64(history.Never)
	for _, i := range slices.Backward(known) {
		if open(ops[i]) {
			ops[i].Return = max(min(ops[i].Return, after), ops[i].Call)
		}
		after = min(after, ops[i].Return)
	}
}

func reads(op history.Op) int {
	if op.Kind.Writes() {
		return 0
	}
	return 1
}

func open(op history.Op) bool { return op.Return == history.Never }

func operations(ops []history.Op) []porcupine.Operation {
	all := make([]porcupine.Operation, len(ops))
	for i, op := range ops {
		all[i] = porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Return: op.Return}
	}
	return all
}

// object is the state of the model: what a client can know of an object.
type object struct {
	exists   bool
	fields   string // those that clients set
	revision uint64 // of the last write that is known
	exact    bool   // the object is at that revision, not at a later one
	unseen   bool   // a worker may have deleted it without an event that is known
	ignored  string // a field that a worker may have cleared without an event that is known; "" for none
}

func stateOf(s history.State) object {
	if !s.Exists() {
		return object{revision: s.Revision}
	}
	return object{exists: true, fields: history.FieldsOf(s.Body).String(), revision: s.Revision, exact: true}
}

// fieldsOf returns the fields of an object that clients set, without the ignored one.
func (o object) fieldsOf(body []byte) string {
	f := history.FieldsOf(body)
	delete(f, o.ignored)
	return f.String()
}

func (o object) String() string {
	if !o.exists {
		return "nothing"
	}
	return fmt.Sprintf("%s at revision %d", o.fields, o.revision)
}

func model(store history.Store, start history.State, unseen, lost bool) porcupine.Model {
	first := stateOf(start)
	first.unseen = unseen
	if lost && store.Cleared != "" {
		if first.ignored = store.Cleared; first.exists {
			first.fields = first.fieldsOf(start.Body)
		}
	}
	first.exact = first.exact && !store.Shared
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, _ any) (bool, any) {
			o, op := state.(object), input.(history.Op)
			ok, next := o.step(op)
			next.exact = next.exact && !store.Shared
			return ok, next
		},
	}
}

// step reports whether a request can have its reply in a state, and returns the state after it.
func (o object) step(op history.Op) (bool, object) {
	if o.unseen && o.exists && showsAbsence(op) {
		o = object{revision: o.revision, unseen: true, ignored: o.ignored}
	}
	switch op.Outcome {
	case history.Unknown:
		if can, _ := o.condition(op); can && o.exists == (op.Kind != history.Create) {
			return true, o.after(op)
		}
		return true, o
	case history.Refused:
		return o.refuses(op), o
	}
	can, _ := o.condition(op)
	switch {
	case !can || o.exists == (op.Kind == history.Create):
		return false, o
	case op.Kind == history.Get:
		return o.shows(op)
	case op.Revision != 0 && op.Revision <= o.revision:
		return false, o
	}
	next := o.after(op)
	if op.Body != nil && next.exists && next.fieldsOf(op.Body) != next.fields {
		return false, o
	}
	return true, next
}

// showsAbsence reports whether a request has its reply, or an effect, only where the object does not exist.
func showsAbsence(op history.Op) bool {
	if op.Outcome == history.Refused {
		return op.Status == http.StatusNotFound && op.File == ""
	}
	return op.Kind == history.Create
}

// condition reports whether a precondition can hold, and whether it can fail.
func (o object) condition(op history.Op) (holds, fails bool) {
	switch {
	case op.IfMatch == 0:
		return true, false
	case o.exact:
		return op.IfMatch == o.revision, op.IfMatch != o.revision
	}
	return op.IfMatch >= o.revision, true
}

// refuses reports whether a request can be refused in a state.
func (o object) refuses(op history.Op) bool {
	switch op.Status {
	case http.StatusNotFound:
		return !o.exists || op.File != "" // or the file is not there
	case http.StatusConflict:
		return o.exists || op.Kind != history.Create || !strings.HasPrefix(op.Problem, "exists")
	case http.StatusPreconditionFailed:
		_, fails := o.condition(op)
		return o.exists && (fails || op.IfAbsent || op.File != "")
	}
	return true
}

// shows reports whether a read can return what it returned.
func (o object) shows(op history.Op) (bool, object) {
	if op.Revision < o.revision || o.exact && op.Revision != o.revision {
		return false, o
	}
	if op.Body != nil && o.fieldsOf(op.Body) != o.fields {
		return false, o
	}
	o.revision, o.exact = op.Revision, true
	return true, o
}

// after returns the state after a write.
func (o object) after(op history.Op) object {
	next := object{exists: true, fields: o.fields, revision: op.Revision, exact: true, unseen: o.unseen,
		ignored: o.ignored}
	if op.Revision == 0 {
		next.revision, next.exact = max(o.revision, op.IfMatch)+1, false
	}
	switch op.Kind {
	case history.Delete, history.Cascade:
		next.exists, next.fields, next.exact = false, "", false
	case history.Attach, history.Remove:
	case history.Undo:
		next.fields = o.fieldsOf(op.Body)
	default:
		next.fields = o.fieldsOf([]byte(merged(o.fields, op)))
	}
	return next
}

func merged(fields string, op history.Op) string {
	return history.FieldsOf([]byte(fields)).Merge(op.Kind, op.Fields).String()
}

// describe lists requests in the order in which they were sent, the first of many.
func describe(ops []history.Op) string {
	const most = 60
	ops = slices.Clone(ops)
	slices.SortFunc(ops, func(a, b history.Op) int { return cmp.Compare(a.Call, b.Call) })
	text := ""
	for i, op := range ops {
		if i == most {
			return text + fmt.Sprintf("\n  and %d more", len(ops)-most)
		}
		text += fmt.Sprintf("\n  %d..%d client %d: %s", op.Call/1000, op.Return/1000, op.Client, op)
	}
	return text
}
