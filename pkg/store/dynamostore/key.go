package dynamostore

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"belfry/pkg/store/driver"
)

// shards is the number of partitions for the entries of an index, and for the
// records with pending events. It is part of the layout.
const shards = 8

// tag uniquely identifies an attempt at changing a record: its time in microseconds,
// which distinguishes orphans from writes in progress, and random bytes. All items that a
// write creates besides the record have its tag.
type tag [16]byte

func newTag(now time.Time) (t tag) {
	binary.BigEndian.PutUint64(t[:], uint64(now.UnixMicro())) //nolint:gosec // after 1970
	_, _ = rand.Read(t[8:])                                   // never fails
	return t
}

// orphanAge is the age from which an item that no record refers to is an orphan and
// not part of a write in progress. It tolerates clocks that differ by hours.
const orphanAge = 24 * time.Hour

func (t tag) before(moment time.Time) bool {
	return binary.BigEndian.Uint64(t[:]) < uint64(moment.UnixMicro()) //nolint:gosec // after 1970
}

// The numbers of the indexes that every store has. Those of the configuration follow.
const (
	liveIndex  = iota // the live records; its keys have no parts
	deadIndex         // the tombstones; the part is the revision
	firstIndex        // of the store's own
)

// indexKey returns the number of an index and the escaped parts of a key.
func indexKey(index uint32, parts ...[]byte) string {
	key := binary.BigEndian.AppendUint32(make([]byte, 0, 64), index)
	for _, part := range parts {
		key = driver.AppendPartEnd(driver.AppendPart(key, part))
	}
	return string(key)
}

func liveKey() string { return indexKey(liveIndex) }

func deadKey(revision uint64) string {
	return indexKey(deadIndex, binary.BigEndian.AppendUint64(nil, revision))
}

// cutPart splits off the first part.
func cutPart(b []byte) (part, rest []byte, ok bool) {
	for i := 0; i+1 < len(b); i++ {
		if b[i] != 0x00 {
			part = append(part, b[i])
			continue
		}
		if b[i+1] == 0x01 {
			return part, b[i+2:], true
		}
		part = append(part, 0x00)
		i++
	}
	return nil, nil, false
}

// afterPrefix returns the smallest string greater than all that begin with prefix,
// or nil if no string is greater.
func afterPrefix(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] != 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

// The sort key of an entry is its position, then its tag. DynamoDB limits it to
// maxSort bytes; a longer position is truncated to maxPosition, and stored in full
// in an attribute.
const (
	maxSort     = 1024
	maxPosition = maxSort - len(tag{})
)

// position returns the position of an entry in its index: ordered by key, then by
// UUID.
func position(key, uuid string) []byte {
	p := append(make([]byte, 0, len(key)+len(uuid)+2), key[4:]...)
	return driver.AppendPartEnd(driver.AppendPart(p, []byte(uuid)))
}

// keyAt is the inverse of position.
func keyAt(index uint32, position []byte) string {
	var ends []int // of the parts, the UUID last
	for at := 0; at < len(position); {
		_, rest, ok := cutPart(position[at:])
		if !ok {
			break
		}
		at = len(position) - len(rest)
		ends = append(ends, at)
	}
	if len(ends) < 2 {
		return indexKey(index)
	}
	return indexKey(index) + string(position[:ends[len(ends)-2]])
}

// uuidAt returns the last part of a position, the UUID.
func uuidAt(position []byte) (string, error) {
	for {
		part, rest, ok := cutPart(position)
		if !ok {
			return "", errors.New("an index entry's key is malformed")
		}
		if len(rest) == 0 {
			return string(part), nil
		}
		position = rest
	}
}

// shardOf chooses a shard by the first part of a key: all keys with the same first
// part are in the same shard, in order.
func shardOf(key, uuid string) int {
	part, _, ok := cutPart([]byte(key[4:]))
	if !ok { // a key without parts
		part = []byte(uuid)
	}
	return shardOfPart(part)
}

func shardOfPart(part []byte) int {
	h := fnv.New32a()
	_, _ = h.Write(part)
	return int(h.Sum32() % shards)
}

// The partition keys of the items of a table. See the package comment.
func recordPartition(uuid string) string { return "r." + uuid }

func entryPartition(index uint32, shard int) string {
	return "i." + strconv.FormatUint(uint64(index), 10) + "." + strconv.Itoa(shard)
}

func piecePartition(t tag, blob, n int) string {
	return fmt.Sprintf("c.%s.%d.%d", hex.EncodeToString(t[:]), blob, n)
}

// chunkPartition is the partition of the chunks of a record, so that they are read in one range.
func chunkPartition(uuid string) string { return "a." + uuid }

// chunkSort is the sort key of a piece of a chunk of an array.
func chunkSort(array string, n int, t tag, piece uint16) []byte {
	b := append(append(make([]byte, 0, len(array)+1+4+len(t)+2), array...), 0)
	b = binary.BigEndian.AppendUint32(b, uint32(n)) //nolint:gosec // bounded by package chunk
	return binary.BigEndian.AppendUint16(append(b, t[:]...), piece)
}

const (
	notePartition    = "n"
	catalogPartition = "m"
)

// singleSortKey is the sort key of an item that is alone in its partition.
var singleSortKey = []byte{0}
