package dynamostore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// sdkCall is one of DynamoDB's operations.
type sdkCall[In, Out any] func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error)

// client is the operations of DynamoDB that belfry calls. It hides the client of the SDK: the linker keeps every method
// of a type that reflection can find, as it can a field of a Backend. The other operations made a program with belfry
// larger by a megabyte.
type client struct {
	BatchGetItem   sdkCall[dynamodb.BatchGetItemInput, dynamodb.BatchGetItemOutput]
	BatchWriteItem sdkCall[dynamodb.BatchWriteItemInput, dynamodb.BatchWriteItemOutput]
	CreateTable    sdkCall[dynamodb.CreateTableInput, dynamodb.CreateTableOutput]
	DeleteItem     sdkCall[dynamodb.DeleteItemInput, dynamodb.DeleteItemOutput]
	DescribeTable  sdkCall[dynamodb.DescribeTableInput, dynamodb.DescribeTableOutput]
	GetItem        sdkCall[dynamodb.GetItemInput, dynamodb.GetItemOutput]
	ListTables     tableLister
	PutItem        sdkCall[dynamodb.PutItemInput, dynamodb.PutItemOutput]
	Query          sdkCall[dynamodb.QueryInput, dynamodb.QueryOutput]
	UpdateItem     sdkCall[dynamodb.UpdateItemInput, dynamodb.UpdateItemOutput]
	UpdateTable    sdkCall[dynamodb.UpdateTableInput, dynamodb.UpdateTableOutput]
}

func newClient(c *dynamodb.Client) client {
	return client{
		BatchGetItem: c.BatchGetItem, BatchWriteItem: c.BatchWriteItem, CreateTable: c.CreateTable,
		DeleteItem: c.DeleteItem, DescribeTable: c.DescribeTable, GetItem: c.GetItem, ListTables: c.ListTables,
		PutItem: c.PutItem, Query: c.Query, UpdateItem: c.UpdateItem, UpdateTable: c.UpdateTable,
	}
}

// tableLister is a dynamodb.ListTablesAPIClient.
type tableLister sdkCall[dynamodb.ListTablesInput, dynamodb.ListTablesOutput]

// ListTables implements dynamodb.ListTablesAPIClient.
func (l tableLister) ListTables(ctx context.Context, in *dynamodb.ListTablesInput,
	options ...func(*dynamodb.Options)) (*dynamodb.ListTablesOutput, error) {
	return l(ctx, in, options...)
}
