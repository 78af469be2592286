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

// shards is how many partitions hold the entries of one index, and how many
// hold the records with waiting events. It is part of the layout.
const shards = 8

// tag names one attempt at changing a record, for ever: its time in
// microseconds, so that leftovers can be told from what is under way, and
// random bytes. What a write leaves outside of its record bears its tag.
type tag [16]byte

func newTag(now time.Time) (t tag) {
	binary.BigEndian.PutUint64(t[:], uint64(now.UnixMicro())) //nolint:gosec // after 1970
	_, _ = rand.Read(t[8:])                                   // never fails
	return t
}

// leftAfter is the age from which on what no record refers to is a leftover,
// and not part of a write that is under way. It forgives clocks that differ by
// hours.
const leftAfter = 24 * time.Hour

func (t tag) before(moment time.Time) bool {
	return binary.BigEndian.Uint64(t[:]) < uint64(moment.UnixMicro()) //nolint:gosec // after 1970
}

// The numbers of the indexes that every store has. Those of its own follow.
const (
	liveIndex  = iota // the live records; its keys have no parts
	deadIndex         // the tombstones; the part is the revision
	firstIndex        // of the store's own
)

// indexKey is an index's number and a key's escaped parts.
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

// cutPart takes the first part off.
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

// afterPrefix returns the first string behind all that begin with prefix, nil
// when there is none.
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

// An entry's sort key is its place, then its tag. DynamoDB takes maxSort bytes;
// of a place that is longer the first maxPlace serve, and the whole stands in
// an attribute.
const (
	maxSort  = 1024
	maxPlace = maxSort - len(tag{})
)

// place is where an entry stands in its index: behind lesser keys, and among
// equal keys behind lesser uuids.
func place(key, uuid string) []byte {
	p := append(make([]byte, 0, len(key)+len(uuid)+2), key[4:]...)
	return driver.AppendPartEnd(driver.AppendPart(p, []byte(uuid)))
}

// keyAt undoes place.
func keyAt(index uint32, place []byte) string {
	var ends []int // of the parts, the uuid's last
	for at := 0; at < len(place); {
		_, rest, ok := cutPart(place[at:])
		if !ok {
			break
		}
		at = len(place) - len(rest)
		ends = append(ends, at)
	}
	if len(ends) < 2 {
		return indexKey(index)
	}
	return indexKey(index) + string(place[:ends[len(ends)-2]])
}

// uuidAt returns the uuid at the end of a place: its last part.
func uuidAt(place []byte) (string, error) {
	for {
		part, rest, ok := cutPart(place)
		if !ok {
			return "", errors.New("an index entry's key is malformed")
		}
		if len(rest) == 0 {
			return string(part), nil
		}
		place = rest
	}
}

// shardOf chooses a shard by what a key begins with: all keys that begin with
// one part are in one shard, in their order.
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

const (
	notePartition      = "n"
	cataloguePartition = "m"
)

// alone is the sort key of an item that has its partition for itself.
var alone = []byte{0}
