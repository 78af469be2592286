package dynamostore_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/test/backing"
)

// makeTable makes a table past the backend. Attributes are a name and a type
// each: of the key, and, if there are four, of the index "pending".
func makeTable(t *testing.T, url, name string, attributes ...string) {
	t.Helper()
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest}
	for _, a := range attributes {
		definition := types.AttributeDefinition{AttributeName: aws.String(a[:1]), AttributeType: types.ScalarAttributeType(a[1:])}
		if !slices.ContainsFunc(in.AttributeDefinitions, func(d types.AttributeDefinition) bool { return *d.AttributeName == a[:1] }) {
			in.AttributeDefinitions = append(in.AttributeDefinitions, definition)
		}
	}
	key := func(hash, sort string) []types.KeySchemaElement {
		return []types.KeySchemaElement{
			{AttributeName: aws.String(hash[:1]), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String(sort[:1]), KeyType: types.KeyTypeRange},
		}
	}
	in.KeySchema = key(attributes[0], attributes[1])
	if len(attributes) == 4 {
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{{
			IndexName: aws.String("pending"), KeySchema: key(attributes[2], attributes[3]),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}}
	}
	if _, err := client(url).CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// TestForeignTables opens stores where a table of another kind is: what is
// wrong is named, and nothing is changed.
func TestForeignTables(t *testing.T) {
	t.Parallel()
	url := backing.Dynalite(t).URL
	b := openBackend(t, options(url))
	makeTable(t, url, "belfry_Keys", "kS", "xS")
	_, err := b.Open(t.Context(), driver.Spec{Name: "Keys"})
	wantKind(t, err, errs.Internal, "belfry_Keys", "k (S), x (S)", "k (S), s (B)")
	makeTable(t, url, "belfry_Index", "kS", "sB", "pS", "kS")
	_, err = b.Open(t.Context(), driver.Spec{Name: "Index"})
	wantKind(t, err, errs.Internal, "belfry_Index", "pending", "p (S), k (S)")
}

// TestTableOfTheAdministrator opens stores whose tables someone else made, one
// of them without the index.
func TestTableOfTheAdministrator(t *testing.T) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			url := start(t).URL
			makeTable(t, url, "belfry_Books", "kS", "sB", "pN", "kS")
			openStore(t, openBackend(t, options(url)), byColour).put(write("a", 0, 1, body("red")))
		})
	}
	url := backing.Dynoxide(t).URL // dynalite adds no index to a table without set throughput
	makeTable(t, url, "belfry_Books", "kS", "sB")
	s := openStore(t, openBackend(t, options(url)), byColour)
	s.put(write("a", 0, 1, body("red")))
	s.waits("a/1")
}

// TestLaterLayout meets a table of a later belfry.
func TestLaterLayout(t *testing.T) {
	t.Parallel()
	url := backing.Dynoxide(t).URL
	b := openBackend(t, options(url))
	openStore(t, b)
	_, err := client(url).PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("belfry_Books"), Item: map[string]types.AttributeValue{
		"k": &types.AttributeValueMemberS{Value: "m"}, "s": &types.AttributeValueMemberB{Value: []byte{0}},
		"c": &types.AttributeValueMemberB{Value: []byte(`{"layout":2}`)}, "n": &types.AttributeValueMemberN{Value: "1"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Open(t.Context(), driver.Spec{Name: "Books"})
	wantKind(t, err, errs.Internal, "belfry_Books", "newer")
}

// TestProcessesOpenTogether has several processes open a new store at once,
// and fill a new index while one that knows it writes.
func TestProcessesOpenTogether(t *testing.T) {
	t.Parallel()
	url := backing.Dynalite(t).URL
	const processes = 4
	var group sync.WaitGroup
	shops := make([]shop, processes)
	for i := range shops {
		b := openBackend(t, options(url))
		group.Go(func() { shops[i] = openStore(t, b) })
	}
	group.Wait()
	const records = 60
	for i := range records {
		w := write(fmt.Sprintf("n%02d", i), 0, 1, body("red", fmt.Sprint(i%2)))
		w.Keys = nil
		shops[i%processes].put(w)
	}
	writer := openStore(t, openBackend(t, options(url)), byColour)
	for i := range shops {
		b := openBackend(t, options(url))
		group.Go(func() { shops[i] = openStore(t, b, byColour) })
	}
	for i := range records / 2 {
		writer.put(write(fmt.Sprintf("n%02d", i), 1, 2, body("blue")))
	}
	group.Wait()
	var red, blue []string
	for i := range records {
		if i < records/2 {
			blue = append(blue, fmt.Sprintf("n%02d", i))
		} else {
			red = append(red, fmt.Sprintf("n%02d", i))
		}
	}
	for _, s := range shops {
		s.finds("red", red...)
		s.finds("blue", blue...)
	}
}

// TestFillIsInterrupted loses the connection while an index is filled: the
// next Open goes on.
func TestFillIsInterrupted(t *testing.T) {
	t.Parallel()
	g, s := gated(t)
	for i := range 40 {
		s.put(write(fmt.Sprintf("n%02d", i), 0, 1, body("red")))
	}
	other := driver.Index{Name: "colour", Parts: 1} // the same keys under another number
	spec := driver.Spec{Name: "Books", Indexes: []driver.Index{other}, Keys: keys}
	b := openBackend(t, options(g.url))
	left := 25
	g.set(func(op, _ string) fate {
		if op == "UpdateItem" {
			left--
		}
		return fate{lost: left < 0}
	})
	_, err := b.Open(t.Context(), spec)
	wantKind(t, err, errs.Unavailable)
	g.set(nil)
	filled := openStore(t, b, other)
	var want []string
	for i := range 40 {
		want = append(want, fmt.Sprintf("n%02d", i))
	}
	filled.finds("red", want...)
}
