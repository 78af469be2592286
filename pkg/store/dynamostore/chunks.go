package dynamostore

import (
	"encoding/binary"
	"slices"

	"belfry/pkg/store/chunk"
)

// chunkRef says where the content of a chunk of an array is: which write created it, and in how many pieces.
type chunkRef struct {
	tag    tag
	pieces uint16 // 0: the chunk is empty
}

// array is an array of a record in chunks.
type array struct {
	chunk.Array
	chunks []chunkRef // by their numbers
}

const (
	maxArrayName = 256     // the name is in sort keys
	maxChunks    = 1 << 17 // of all arrays of a record; bounds the memory that decoding a corrupt item can use
)

func arrayOf(arrays []array, name string) *array {
	for i := range arrays {
		if arrays[i].Name == name {
			return &arrays[i]
		}
	}
	return nil
}

func infosOf(arrays []array) []chunk.Array {
	infos := make([]chunk.Array, len(arrays))
	for i := range arrays {
		infos[i] = arrays[i].Array
	}
	return infos
}

// encodeArrays encodes what is known of the arrays, each with its length before it, then the tags of the chunks after
// their number. For each array follow the number of chunks that are not empty, and for each of these how many empty
// ones are before it, the number of its tag, and the number of its pieces.
func encodeArrays(arrays []array) []byte {
	var tags []tag
	number := make(map[tag]uint64)
	var refs []byte
	for i := range arrays {
		count, empty := uint64(0), uint64(0)
		var list []byte
		for _, c := range arrays[i].chunks {
			if c.pieces == 0 {
				empty++
				continue
			}
			if _, known := number[c.tag]; !known {
				number[c.tag] = uint64(len(tags))
				tags = append(tags, c.tag)
			}
			for _, n := range [...]uint64{empty, number[c.tag], uint64(c.pieces)} {
				list = binary.AppendUvarint(list, n)
			}
			count, empty = count+1, 0
		}
		refs = append(binary.AppendUvarint(refs, count), list...)
	}
	b := appendField(nil, string(chunk.Encode(infosOf(arrays))))
	return append(appendTags(b, tags), refs...)
}

func decodeArrays(b []byte) ([]array, error) {
	encoded, b, ok := cutField(b)
	if !ok {
		return nil, errMalformed
	}
	infos, err := chunk.Decode(encoded)
	if err != nil {
		return nil, err
	}
	tags, b, ok := cutTags(b)
	if !ok {
		return nil, errMalformed
	}
	arrays, total := make([]array, len(infos)), 0
	for i, info := range infos {
		if total += info.Chunks; total > maxChunks {
			return nil, errMalformed
		}
		arrays[i] = array{info, make([]chunkRef, info.Chunks)}
		if b, ok = cutRefs(b, tags, arrays[i].chunks); !ok {
			return nil, errMalformed
		}
	}
	if len(b) > 0 {
		return nil, errMalformed
	}
	return arrays, nil
}

// cutRefs reads the chunks of an array.
func cutRefs(b []byte, tags []tag, into []chunkRef) (rest []byte, ok bool) {
	count, b, ok := cutNumber(b)
	if !ok || count > uint64(len(into)) {
		return nil, false
	}
	at := uint64(0)
	for range count {
		var c [3]uint64 // empty chunks before it, its tag, its pieces
		for i := range c {
			if c[i], b, ok = cutNumber(b); !ok {
				return nil, false
			}
		}
		if c[0] >= uint64(len(into))-at || c[1] >= uint64(len(tags)) || c[2] == 0 || c[2] > maxPieces {
			return nil, false
		}
		into[at+c[0]] = chunkRef{tags[c[1]], uint16(c[2])} //nolint:gosec // small
		at += c[0] + 1
	}
	return b, true
}

// keys returns the keys of the pieces of some chunks of the array of a record.
func (a *array) keys(uuid string, numbers []int) (keys []item) {
	for _, n := range numbers {
		for piece := range a.chunks[n].pieces {
			keys = append(keys, itemKey(chunkPartition(uuid), chunkSort(a.Name, n, a.chunks[n].tag, piece)))
		}
	}
	return keys
}

// chunkKeys returns the keys of the pieces of all chunks of arrays of a record.
func chunkKeys(uuid string, arrays []array) (keys []item) {
	for i := range arrays {
		keys = append(keys, arrays[i].keys(uuid, arrays[i].all())...)
	}
	return keys
}

// all returns the numbers of all chunks.
func (a *array) all() []int {
	numbers := make([]int, len(a.chunks))
	for n := range numbers {
		numbers[n] = n
	}
	return numbers
}

// chosen returns arrays with some of their chunks, without the arrays of which none is chosen.
func chosen(arrays []array, choose func(name string, n int, c chunkRef) bool) (some []array) {
	for i := range arrays {
		a := array{arrays[i].Array, slices.Clone(arrays[i].chunks)}
		chosen := false
		for n, c := range a.chunks {
			if c.pieces > 0 && choose(a.Name, n, c) {
				chosen = true
			} else {
				a.chunks[n] = chunkRef{}
			}
		}
		if chosen {
			some = append(some, a)
		}
	}
	return some
}
