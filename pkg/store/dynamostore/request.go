package dynamostore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// send sends the write of the record's item and returns the item that it replaced. Most
// creates find none: an insertion is less work than an update, but it would replace the
// item of a tombstone with its pending events.
func (p *plan) send(ctx context.Context, b *Backend, table string, insert bool) (replaced item, err error) {
	if insert {
		_, err := b.client.PutItem(ctx, p.insertInput(table), withoutRetries)
		return nil, err
	}
	out, err := b.client.UpdateItem(ctx, p.updateInput(table), withoutRetries)
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}

// withoutRetries disables the retries of the SDK.
func withoutRetries(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// attributes returns the attributes that a write sets, without its events.
func (p *plan) attributes() item {
	set := item{attrRevision: numberAttr(p.w.Revision), attrValue: bytesAttr(p.value.encode())}
	if p.w.Body == nil {
		set[attrDeleted] = &types.AttributeValueMemberBOOL{Value: true}
		if p.w.Owner != "" {
			set[attrOwner] = textAttr(p.w.Owner)
		}
	}
	if len(p.events) > 0 {
		set[attrPending] = numberAttr(uint64(shardOfPart([]byte(p.w.UUID)))) //nolint:gosec // small
	}
	return set
}

// eventAttrs returns the names of the attributes of the events, and their revisions.
func (p *plan) eventAttrs() (names []string, waiting *types.AttributeValueMemberNS) {
	waiting = &types.AttributeValueMemberNS{}
	for i := range p.events {
		revision := p.w.FirstRevision() + uint64(i)
		names = append(names, eventAttr(revision, p.events[i].isOverflow()))
		waiting.Value = append(waiting.Value, strconv.FormatUint(revision, 10))
	}
	return names, waiting
}

// insertInput is the request that creates the item of a record, unless one exists.
func (p *plan) insertInput(table string) *dynamodb.PutItemInput {
	it := recordItem(p.w.UUID)
	maps.Copy(it, p.attributes())
	if names, waiting := p.eventAttrs(); len(names) > 0 {
		it[attrWaiting] = waiting
		for i, name := range names {
			it[name] = bytesAttr(p.events[i].encode())
		}
	}
	return &dynamodb.PutItemInput{
		TableName: &table, Item: it, ConditionExpression: aws.String("attribute_not_exists(k)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// updateInput is the request that changes the item of a record and leaves the events that
// are pending in it.
func (p *plan) updateInput(table string) *dynamodb.UpdateItemInput {
	values := make(item)
	in := &dynamodb.UpdateItemInput{
		TableName: &table, Key: recordItem(p.w.UUID), ExpressionAttributeValues: values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	var set, remove []string
	attributes := p.attributes()
	for _, name := range []string{attrRevision, attrValue, attrDeleted, attrOwner, attrPending} {
		if value := attributes[name]; value != nil {
			set = append(set, name+" = :"+name)
			values[":"+name] = value
		} else if name != attrPending { // which others' events may need
			remove = append(remove, name)
		}
	}
	names, waiting := p.eventAttrs()
	for i, name := range names {
		if in.ExpressionAttributeNames == nil {
			in.ExpressionAttributeNames = make(map[string]string, len(names))
		}
		set = append(set, fmt.Sprintf("#%d = :%d", i, i))
		in.ExpressionAttributeNames[fmt.Sprintf("#%d", i)] = name
		values[fmt.Sprintf(":%d", i)] = bytesAttr(p.events[i].encode())
	}
	change := "SET " + strings.Join(set, ", ")
	if len(remove) > 0 {
		change += " REMOVE " + strings.Join(remove, ", ")
	}
	if len(names) > 0 {
		change += " ADD q :q"
		values[":q"] = waiting
	}
	in.UpdateExpression = &change
	if p.base == nil {
		values[":first"] = numberAttr(p.w.FirstRevision())
		in.ConditionExpression = aws.String("attribute_not_exists(k) OR (attribute_exists(d) AND r < :first)")
		in.ReturnValues = types.ReturnValueAllOld
	} else {
		values[":if"] = numberAttr(p.w.IfRevision)
		values[":was"] = bytesAttr(p.base.value.head())
		in.ConditionExpression = aws.String("r = :if AND attribute_not_exists(d) AND begins_with(v, :was)")
	}
	return in
}

// writeBuffer is the size of a connection's send buffer. Most requests fit
// in it.
const writeBuffer = 16 << 10

// singleWriteClient is an HTTP client that sends a request with one write, if the request fits in the
// buffer of its connection. net/http sends the header separately unless it recognizes that the body is
// in memory. It does not recognize that, because the SDK wraps its bodies.
type singleWriteClient struct{ dynamodb.HTTPClient }

func (c singleWriteClient) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.ContentLength > 0 && r.ContentLength < writeBuffer {
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, err
		}
		if err := r.Body.Close(); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return c.HTTPClient.Do(r)
}
