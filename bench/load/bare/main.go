// Command bare is the limit that belfry on a database is compared with: echo,
// JSON decoding, and for each request the one unavoidable call of the database's
// driver, with the durability or consistency that belfry uses.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/labstack/echo/v4"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

// calls are the calls of the driver.
type calls struct {
	insert func(ctx context.Context, uuid string, body []byte) error
	find   func(ctx context.Context, uuid string) ([]byte, error)
}

func run(ctx context.Context, kind, url string) error {
	open := map[string]func(context.Context, string) (*calls, error){"mongodb": openMongo, "dynamodb": openDynamo}[kind]
	if open == nil {
		return fmt.Errorf("no database %q", kind)
	}
	db, err := open(ctx, url)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	e := echo.New()
	e.GET("/readyz", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	e.POST("/items", db.create)
	e.GET("/items/:uuid", db.get)
	return http.Serve(listener, e) //nolint:gosec // it serves one client
}

func (d *calls) create(c echo.Context) error {
	body, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return err
	}
	var object struct{ UUID string }
	if err := json.Unmarshal(body, &object); err != nil {
		return c.NoContent(http.StatusBadRequest)
	}
	if err := d.insert(c.Request().Context(), object.UUID, body); err != nil {
		return err
	}
	return c.JSONBlob(http.StatusCreated, body)
}

func (d *calls) get(c echo.Context) error {
	body, err := d.find(c.Request().Context(), c.Param("uuid"))
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, body)
}

func openMongo(_ context.Context, url string) (*calls, error) {
	journal := true
	client, err := mongo.Connect(options.Client().ApplyURI(url).
		SetWriteConcern(&writeconcern.WriteConcern{W: writeconcern.WCMajority, Journal: &journal}).
		SetReadConcern(readconcern.Majority()))
	if err != nil {
		return nil, err
	}
	items := client.Database("bare").Collection("Items")
	return &calls{
		insert: func(ctx context.Context, uuid string, body []byte) error {
			_, err := items.InsertOne(ctx, bson.D{{Key: "_id", Value: uuid}, {Key: "b", Value: body}})
			return err
		},
		find: func(ctx context.Context, uuid string) ([]byte, error) {
			raw, err := items.FindOne(ctx, bson.D{{Key: "_id", Value: uuid}}).Raw()
			if err != nil {
				return nil, err
			}
			_, body := raw.Lookup("b").Binary()
			return body, nil
		},
	}, nil
}

func openDynamo(ctx context.Context, url string) (*calls, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion("eu-central-1"),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 512, 512
		})))
	if err != nil {
		return nil, err
	}
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.BaseEndpoint = &url })
	table, key := aws.String("bare"), aws.String("k")
	_, err = client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: table, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: key,
			AttributeType: types.ScalarAttributeTypeS}},
		KeySchema: []types.KeySchemaElement{{AttributeName: key, KeyType: types.KeyTypeHash}},
	})
	if err != nil && !errors.As(err, new(*types.ResourceInUseException)) {
		return nil, err
	}
	keyed := func(uuid string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: uuid}}
	}
	return &calls{
		insert: func(ctx context.Context, uuid string, body []byte) error {
			item := keyed(uuid)
			item["b"] = &types.AttributeValueMemberB{Value: body}
			_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: table, Item: item})
			return err
		},
		find: func(ctx context.Context, uuid string) ([]byte, error) {
			out, err := client.GetItem(ctx,
				&dynamodb.GetItemInput{TableName: table, Key: keyed(uuid), ConsistentRead: aws.Bool(true)})
			if err != nil {
				return nil, err
			}
			body, ok := out.Item["b"].(*types.AttributeValueMemberB)
			if !ok {
				return nil, fmt.Errorf("no item %s", uuid)
			}
			return body.Value, nil
		},
	}, nil
}
