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

// pendingIndex finds the records with pending events.
const pendingIndex = "pending"

// tableTimeout bounds the wait for a table or an index to become active.
const tableTimeout = 10 * time.Minute

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

// ensureTable creates the table and its index if they don't exist, and waits until
// they are active.
func (b *Backend) ensureTable(ctx context.Context, table string) error {
	deadline := time.Now().Add(tableTimeout)
	for attempt := 1; ; attempt++ {
		done, err := b.nextStep(ctx, table)
		if err != nil || done {
			return err
		}
		if time.Now().After(deadline) {
			return b.unavailable(nil, "%s is still creating the table %s after %s", b.where, table, tableTimeout)
		}
		if err := waitToRetry(ctx, attempt); err != nil {
			return err
		}
	}
}

// nextStep creates a missing part, and reports whether the table is active. Another
// process may be doing the same.
func (b *Backend) nextStep(ctx context.Context, table string) (done bool, err error) {
	out, err := b.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if missing := (*types.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		return false, b.createTable(ctx, table)
	}
	if err != nil {
		return false, b.wrapError(ctx, err, table)
	}
	if problem := wrongTable(out.Table); problem != "" {
		return false, errs.New(errs.Internal,
			"the table %s was not created by belfry: %s; use another tablePrefix, or delete the table", table, problem)
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
	return b.ignoreExists(ctx, err, table)
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
	return b.ignoreExists(ctx, err, table)
}

// ignoreExists ignores that another process has created the table or index.
func (b *Backend) ignoreExists(ctx context.Context, err error, table string) error {
	if inUse := (*types.ResourceInUseException)(nil); errors.As(err, &inUse) {
		return nil
	}
	return b.wrapError(ctx, err, table)
}

// wrongTable returns why a table can't be used, "" if it can.
func wrongTable(t *types.TableDescription) string {
	if got := showSchema(t.KeySchema, t.AttributeDefinitions); got != "k (S), s (B)" {
		return fmt.Sprintf("its key is %s and must be k (S), s (B)", got)
	}
	for _, ix := range t.GlobalSecondaryIndexes {
		if got := showSchema(ix.KeySchema, t.AttributeDefinitions); aws.ToString(ix.IndexName) == pendingIndex &&
			got != "p (N), k (S)" {
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
