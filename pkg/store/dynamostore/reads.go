package dynamostore

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"belfry/pkg/store/driver"
)

// maxReadsTogether is how many items the reads of several callers ask for in one request. A reply has at most 16 MB;
// what is left takes further requests.
const maxReadsTogether = 32

// readsInFlight is how many reads of a table are requests of their own. Those beyond it are read together: most of what
// a read costs, here and on the server, is its request.
func readsInFlight() int { return max(4, 2*runtime.GOMAXPROCS(0)) }

// readPatience is how long a read waits for those of others: a request that gets no reply takes seconds.
const readPatience = 200 * time.Millisecond

// itemRead is a read of a record's item.
type itemRead struct {
	uuid string
	item item // what was read; nil: there is no such item
}

func (b *Backend) newReads(table string) *driver.Batcher[*itemRead] {
	run := func(ctx context.Context, reads []*itemRead) []error {
		if len(reads) == 1 {
			return []error{b.readOne(ctx, table, reads[0])}
		}
		return slices.Repeat([]error{b.readTogether(ctx, table, reads)}, len(reads))
	}
	return driver.NewBatcher(readsInFlight(), maxReadsTogether, run).WithPatience(readPatience)
}

func (b *Backend) readOne(ctx context.Context, table string, read *itemRead) error {
	out, err := b.client.GetItem(ctx,
		&dynamodb.GetItemInput{TableName: &table, Key: recordItem(read.uuid), ConsistentRead: trueValue})
	if err == nil {
		read.item = out.Item
	}
	return err
}

// readTogether reads items of which some may be the same one.
func (b *Backend) readTogether(ctx context.Context, table string, reads []*itemRead) error {
	of := make(map[string][]*itemRead, len(reads))
	var keys []item
	for _, read := range reads {
		key := recordItem(read.uuid)
		partition := textOf(key[attrPartition])
		if of[partition] == nil {
			keys = append(keys, key)
		}
		of[partition] = append(of[partition], read)
	}
	items, err := b.readAll(ctx, table, keys, "")
	for _, it := range items {
		for _, read := range of[textOf(it[attrPartition])] {
			read.item = it
		}
	}
	return err
}
