package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// outcome is what became of an attempt at a write.
type outcome int

const (
	unknown outcome = iota // it may or may not have been made
	made
	refused // it was not made, and won't be
	stale   // it was not made, because its trace is out of date
	full    // it was not made, because the item would be too large
)

func errMismatch() error {
	return errs.New(errs.Mismatch, "the object was changed by someone else meanwhile")
}

// Put is part of driver.Store.
func (s *store) Put(ctx context.Context, w driver.Write) error {
	if err := s.ready(ctx, w.UUID); err != nil {
		return err
	}
	if w.IfRevision != 0 && w.FirstRevision() <= w.IfRevision {
		return errMismatch()
	}
	for range maxRereads {
		result, err := s.try(ctx, &w)
		if result != stale {
			return err
		}
		s.traces.forget(w.UUID)
	}
	return s.b.away(nil, "the object %s is being given other keys over and over", w.UUID)
}

func (s *store) try(ctx context.Context, w *driver.Write) (outcome, error) {
	was, err := s.before(ctx, w)
	if err != nil {
		return refused, err
	}
	for _, small := range []bool{false, true} {
		p, err := s.plan(w, was, small)
		if err != nil {
			return refused, err
		}
		if result, err := s.carryOut(ctx, p); result != full {
			return result, err
		}
	}
	return refused, s.b.away(nil, "so many events wait in the object %s that its item has no room for another: "+
		"it can be written again once the bus has taken them", w.UUID)
}

// before returns the trace of what a write replaces, nil for a creation.
func (s *store) before(ctx context.Context, w *driver.Write) (*trace, error) {
	if w.IfRevision == 0 {
		return nil, nil
	}
	if t := s.traces.get(w.UUID, w.IfRevision); t != nil {
		return t, nil
	}
	r, err := s.read(ctx, w.UUID)
	if err != nil {
		return nil, err
	}
	if r == nil || r.deleted || r.revision != w.IfRevision {
		return nil, errMismatch()
	}
	return s.traceOf(r), nil
}

// carryOut makes one attempt: what lies outside first, then the record and its
// entries side by side. A write that tells nobody leaves no event by which its
// entries could be made sure of, so they come first.
func (s *store) carryOut(ctx context.Context, p *plan) (outcome, error) {
	if err := s.layOut(ctx, p); err != nil {
		return unknown, err
	}
	var entries sync.WaitGroup
	var entriesErr error
	entries.Go(func() { entriesErr = s.b.writeAll(ctx, s.table, entryWrites(p.w.UUID, p.put)) })
	if len(p.events) == 0 {
		if entries.Wait(); entriesErr != nil {
			return unknown, entriesErr
		}
	}
	result, replaced, err := s.update(ctx, p)
	entries.Wait()
	switch result {
	case made:
		if p.was != nil {
			replaced = p.was
		}
		s.b.broom.add(litter{table: s.table, keys: p.useless(replaced), note: p.noteKey()})
		if entriesErr != nil {
			s.traces.forget(p.w.UUID)
			return result, entriesErr
		}
		s.follow(p)
	case refused, stale, full:
		s.b.broom.add(litter{table: s.table, keys: p.vain(), note: p.noteKey()})
	case unknown:
		s.traces.forget(p.w.UUID)
	}
	return result, err
}

// layOut writes what lies outside, and before it the note of it.
func (s *store) layOut(ctx context.Context, p *plan) error {
	if p.note == nil {
		return nil
	}
	_, err := s.b.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.table, Item: p.note})
	if err != nil {
		return s.b.fault(ctx, err, s.table)
	}
	return s.b.writeAll(ctx, s.table, p.pieces)
}

// follow remembers what was made.
func (s *store) follow(p *plan) {
	tags := []tag{p.tag}
	if p.was != nil {
		for t := range p.was.unsure {
			tags = append(tags, t)
		}
	}
	s.sure.add(tags...)
	t := &trace{uuid: p.w.UUID, revision: p.w.Revision, value: p.value, entries: p.entries, weight: p.weight()}
	t.value.data = nil
	s.traces.put(t)
}

// update changes the record's item in one conditional act. Each of its
// requests is sent again while its outcome is open, so the condition may fail
// for the write's own sake: judge tells. Of a creation it returns the trace of
// the tombstone that it replaced.
func (s *store) update(ctx context.Context, p *plan) (outcome, *trace, error) {
	in := s.updateInput(p)
	open := false // a request may have been carried out without our knowing
	for attempt := 1; ; attempt++ {
		out, err := s.b.client.UpdateItem(ctx, in, once)
		switch {
		case err == nil:
			return made, s.replaced(out.Attributes), nil
		case conditionFailed(err):
			result, err := s.judge(ctx, p, open)
			return result, nil, err
		case tooLarge(err):
			return full, nil, nil
		}
		open = open || !unmade(err)
		last := attempt == attempts || ctx.Err() != nil || !s.b.retryer.IsErrorRetryable(err)
		if !last && s.b.pause(ctx, attempt) == nil {
			continue
		}
		result := refused
		if open {
			result = unknown
		}
		return result, nil, s.b.fault(ctx, err, s.table)
	}
}

// once keeps the SDK from sending a request again by itself.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

func (s *store) updateInput(p *plan) *dynamodb.UpdateItemInput {
	values := item{":r": numberAttr(p.w.Revision), ":v": bytesAttr(p.value.encode())}
	in := &dynamodb.UpdateItemInput{TableName: &s.table, Key: recordItem(p.w.UUID), ExpressionAttributeValues: values}
	set, rest := "SET r = :r, v = :v", " REMOVE d"
	if p.w.Body == nil {
		set, rest = set+", d = :d", ""
		values[":d"] = &types.AttributeValueMemberBOOL{Value: true}
	}
	if len(p.events) > 0 {
		set, rest = set+", p = :p", rest+" ADD q :q"
		values[":p"] = numberAttr(uint64(shardOfPart([]byte(p.w.UUID)))) //nolint:gosec // small
		waiting := &types.AttributeValueMemberNS{}
		values[":q"] = waiting
		in.ExpressionAttributeNames = make(map[string]string, len(p.events))
		for i := range p.events {
			revision := p.w.FirstRevision() + uint64(i)
			set += fmt.Sprintf(", #%d = :%d", i, i)
			in.ExpressionAttributeNames[fmt.Sprintf("#%d", i)] = eventAttr(revision, p.events[i].outside())
			values[fmt.Sprintf(":%d", i)] = bytesAttr(p.events[i].encode())
			waiting.Value = append(waiting.Value, strconv.FormatUint(revision, 10))
		}
	}
	in.UpdateExpression = aws.String(set + rest)
	if p.was == nil {
		values[":first"] = numberAttr(p.w.FirstRevision())
		in.ConditionExpression = aws.String("attribute_not_exists(k) OR (attribute_exists(d) AND r < :first)")
		in.ReturnValues = types.ReturnValueAllOld
	} else {
		values[":if"] = numberAttr(p.w.IfRevision)
		values[":was"] = bytesAttr(p.was.value.head())
		in.ConditionExpression = aws.String("r = :if AND attribute_not_exists(d) AND begins_with(v, :was)")
	}
	return in
}

// replaced is the trace of a tombstone that a creation replaced. One that
// can't be read is not worth an error: its entry is a leftover.
func (s *store) replaced(old item) *trace {
	if len(old) == 0 {
		return nil
	}
	r, err := decodeRecord(old)
	if err != nil || r.value.outside() || r.setValue(r.value.data) != nil {
		return nil
	}
	return s.traceOf(r)
}

// judge finds out why a condition did not hold. Open says that an earlier
// request of the same write may have been carried out.
func (s *store) judge(ctx context.Context, p *plan, open bool) (outcome, error) {
	if p.was == nil && !open {
		return refused, errMismatch()
	}
	r, err := s.readItem(ctx, p.w.UUID)
	switch {
	case err != nil && open:
		return unknown, err
	case err != nil:
		return refused, err
	case r != nil && p.made(r):
		return made, nil
	case r != nil && p.was != nil && !r.deleted && r.revision == p.w.IfRevision:
		return stale, nil
	case open && (r == nil || r.revision >= p.w.Revision):
		return unknown, s.b.away(errors.New("the reply was lost, and others changed the object since"),
			"whether the object %s was written can't be told", p.w.UUID)
	default:
		return refused, errMismatch()
	}
}

// made reports whether a record shows that the plan was carried out.
func (p *plan) made(r *record) bool {
	event, waits := r.events[p.w.FirstRevision()]
	return r.value.tag == p.tag || waits && event.tag == p.tag
}
