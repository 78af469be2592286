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

// makeTable creates a table without the backend. Each attribute is a name and a type:
// two for the key and, if there are four, two for the index "pending".
func makeTable(t *testing.T, url, name string, attributes ...string) {
	t.Helper()
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest}
	for _, a := range attributes {
		definition := types.AttributeDefinition{AttributeName: aws.String(a[:1]),
			AttributeType: types.ScalarAttributeType(a[1:])}
		if !slices.ContainsFunc(in.AttributeDefinitions,
			func(d types.AttributeDefinition) bool { return *d.AttributeName == a[:1] }) {
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

// TestForeignTablesAreRefused opens stores whose tables have another key.
func TestForeignTablesAreRefused(t *testing.T) {
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

// TestExistingTablesAreUsed opens stores whose tables an administrator created, one of
// them without the index.
func TestExistingTablesAreUsed(t *testing.T) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			url := start(t).URL
			makeTable(t, url, "belfry_Books", "kS", "sB", "pN", "kS")
			openStore(t, openBackend(t, options(url)), byColor).put(write("a", 0, 1, body("red")))
		})
	}
	url := backing.Dynoxide(t).URL // dynalite adds no index to a table without set throughput
	makeTable(t, url, "belfry_Books", "kS", "sB")
	s := openStore(t, openBackend(t, options(url)), byColor)
	s.put(write("a", 0, 1, body("red")))
	s.wantPending("a/1")
}

// TestNewerLayoutIsRefused opens a table that a newer belfry wrote.
func TestNewerLayoutIsRefused(t *testing.T) {
	t.Parallel()
	url := backing.Dynoxide(t).URL
	b := openBackend(t, options(url))
	openStore(t, b)
	_, err := client(url).PutItem(t.Context(),
		&dynamodb.PutItemInput{TableName: aws.String("belfry_Books"), Item: map[string]types.AttributeValue{
			"k": &types.AttributeValueMemberS{Value: "m"}, "s": &types.AttributeValueMemberB{Value: []byte{0}},
			"c": &types.AttributeValueMemberB{Value: []byte(`{"layout":2}`)},
			"n": &types.AttributeValueMemberN{Value: "1"},
		}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Open(t.Context(), driver.Spec{Name: "Books"})
	wantKind(t, err, errs.Internal, "belfry_Books", "newer")
}

// TestProcessesOpenAStoreConcurrently has several processes open a new store
// concurrently, and fill a new index while another process writes to it.
func TestProcessesOpenAStoreConcurrently(t *testing.T) {
	t.Parallel()
	url := backing.Dynalite(t).URL
	const processes = 4
	var group sync.WaitGroup
	stores := make([]testStore, processes)
	for i := range stores {
		b := openBackend(t, options(url))
		group.Go(func() { stores[i] = openStore(t, b) })
	}
	group.Wait()
	const records = 60
	for i := range records {
		w := write(fmt.Sprintf("n%02d", i), 0, 1, body("red", fmt.Sprint(i%2)))
		w.Keys = nil
		stores[i%processes].put(w)
	}
	writer := openStore(t, openBackend(t, options(url)), byColor)
	for i := range stores {
		b := openBackend(t, options(url))
		group.Go(func() { stores[i] = openStore(t, b, byColor) })
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
	for _, s := range stores {
		s.wantMatches("red", red...)
		s.wantMatches("blue", blue...)
	}
}

// TestInterruptedFillIsResumed loses the connection while an index is filled: the next
// Open completes it.
func TestInterruptedFillIsResumed(t *testing.T) {
	t.Parallel()
	g, s := openThroughProxy(t)
	for i := range 40 {
		s.put(write(fmt.Sprintf("n%02d", i), 0, 1, body("red")))
	}
	other := driver.Index{Name: "color", Parts: 1} // the same keys under another number
	spec := driver.Spec{Name: "Books", Indexes: []driver.Index{other}, Keys: keys}
	b := openBackend(t, options(g.url))
	left := 25
	g.set(func(op, _ string) fault {
		if op == "UpdateItem" {
			left--
		}
		return fault{drop: left < 0}
	})
	_, err := b.Open(t.Context(), spec)
	wantKind(t, err, errs.Unavailable)
	g.set(nil)
	filled := openStore(t, b, other)
	var want []string
	for i := range 40 {
		want = append(want, fmt.Sprintf("n%02d", i))
	}
	filled.wantMatches("red", want...)
}
