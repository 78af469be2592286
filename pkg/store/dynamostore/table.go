package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"belfry/pkg/errs"
)

// pendingIndex finds the records with waiting events.
const pendingIndex = "pending"

// The waits for a table or an index to be made.
const (
	tableTime = 10 * time.Minute
)

func attributeTypes() []types.AttributeDefinition {
	return []types.AttributeDefinition{
		{AttributeName: aws.String(attrPartition), AttributeType: types.ScalarAttributeTypeS},
		{AttributeName: aws.String(attrSort), AttributeType: types.ScalarAttributeTypeB},
		{AttributeName: aws.String(attrPending), AttributeType: types.ScalarAttributeTypeN},
	}
}

func schema(hash, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(hash), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(sort), KeyType: types.KeyTypeRange},
	}
}

// makeTable makes the table and its index, as far as they are not there, and
// waits until they serve.
func (b *Backend) makeTable(ctx context.Context, table string) error {
	deadline := time.Now().Add(tableTime)
	for attempt := 1; ; attempt++ {
		done, err := b.nextStep(ctx, table)
		if err != nil || done {
			return err
		}
		if time.Now().After(deadline) {
			return b.away(nil, "%s is still making the table %s after %s", b.where, table, tableTime)
		}
		if err := b.pause(ctx, attempt); err != nil {
			return err
		}
	}
}

// nextStep does what brings the table nearer to serving, and reports whether
// it does. Another process may be doing the same.
func (b *Backend) nextStep(ctx context.Context, table string) (done bool, err error) {
	out, err := b.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if missing := (*types.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		return false, b.createTable(ctx, table)
	}
	if err != nil {
		return false, b.fault(ctx, err, table)
	}
	if problem := wrongTable(out.Table); problem != "" {
		return false, errs.New(errs.Internal, "the table %s is not one of belfry's: %s; take another tablePrefix, or remove the table", table, problem)
	}
	at := slices.IndexFunc(out.Table.GlobalSecondaryIndexes, func(ix types.GlobalSecondaryIndexDescription) bool {
		return aws.ToString(ix.IndexName) == pendingIndex
	})
	switch status := out.Table.TableStatus; {
	case status == types.TableStatusCreating || status == types.TableStatusDeleting:
		return false, nil
	case status != types.TableStatusActive && status != types.TableStatusUpdating:
		return false, errs.New(errs.Internal, "the table %s can't be used: its status is %s", table, status)
	case at >= 0:
		return out.Table.GlobalSecondaryIndexes[at].IndexStatus == types.IndexStatusActive, nil
	case status == types.TableStatusUpdating:
		return false, nil
	default:
		return false, b.createIndex(ctx, table)
	}
}

func (b *Backend) createTable(ctx context.Context, table string) error {
	_, err := b.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            &table,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: attributeTypes(),
		KeySchema:            schema(attrPartition, attrSort),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName:  aws.String(pendingIndex),
			KeySchema:  schema(attrPending, attrPartition),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
	})
	return b.unlessMade(ctx, err, table)
}

func (b *Backend) createIndex(ctx context.Context, table string) error {
	_, err := b.client.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName:            &table,
		AttributeDefinitions: attributeTypes(),
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{
			Create: &types.CreateGlobalSecondaryIndexAction{
				IndexName:  aws.String(pendingIndex),
				KeySchema:  schema(attrPending, attrPartition),
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
			},
		}},
	})
	return b.unlessMade(ctx, err, table)
}

// unlessMade forgives that another process was first.
func (b *Backend) unlessMade(ctx context.Context, err error, table string) error {
	if inUse := (*types.ResourceInUseException)(nil); errors.As(err, &inUse) {
		return nil
	}
	return b.fault(ctx, err, table)
}

// wrongTable says what keeps a table from being used.
func wrongTable(t *types.TableDescription) string {
	if got := showSchema(t.KeySchema, t.AttributeDefinitions); got != "k (S), s (B)" {
		return fmt.Sprintf("its key is %s and must be k (S), s (B)", got)
	}
	for _, ix := range t.GlobalSecondaryIndexes {
		if got := showSchema(ix.KeySchema, t.AttributeDefinitions); aws.ToString(ix.IndexName) == pendingIndex && got != "p (N), k (S)" {
			return fmt.Sprintf("the key of its index %s is %s and must be p (N), k (S)", pendingIndex, got)
		}
	}
	return ""
}

func showSchema(keys []types.KeySchemaElement, attributes []types.AttributeDefinition) string {
	var list []string
	for _, key := range keys {
		name := aws.ToString(key.AttributeName)
		for _, a := range attributes {
			if aws.ToString(a.AttributeName) == name {
				list = append(list, fmt.Sprintf("%s (%s)", name, a.AttributeType))
			}
		}
	}
	return strings.Join(list, ", ")
}
