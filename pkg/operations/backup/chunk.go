package backup

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"

	"belfry/pkg/errs"
)

// The sizes of chunks, before they are compressed.
const (
	chunkBytes = 4 << 20  // after which a chunk ends
	maxPart    = 64 << 20 // a chunk ends with an item, and those of all backends are smaller than 17 MiB
)

// The first bytes of chunks, by content.
const (
	kindRecords  = "belfry records\n"
	kindPending  = "belfry pending\n"
	kindMessages = "belfry messages\n"
	kindHashes   = "belfry hashes\n"
)

var errTruncated = errors.New("it ends within an item")

// chunk is a list of items that is being written.
type chunk struct {
	kind  string
	data  []byte
	items int64
}

func newChunk(kind string) *chunk {
	c := &chunk{kind: kind}
	c.reset()
	return c
}

func (c *chunk) reset() { c.data, c.items = append(c.data[:0], c.kind...), 0 }

func (c *chunk) bytes(b []byte) { c.data = append(binary.AppendUvarint(c.data, uint64(len(b))), b...) }

func (c *chunk) text(s string) { c.data = append(binary.AppendUvarint(c.data, uint64(len(s))), s...) }

func (c *chunk) number(n uint64) { c.data = binary.AppendUvarint(c.data, n) }

// cursor reads the items of a chunk. After an error it returns zeros.
type cursor struct {
	data []byte
	err  error
}

func (c *cursor) more() bool { return c.err == nil && len(c.data) > 0 }

func (c *cursor) number() uint64 {
	n, size := binary.Uvarint(c.data)
	if size <= 0 {
		c.data, c.err = nil, errTruncated
		return 0
	}
	c.data = c.data[size:]
	return n
}

func (c *cursor) bytes() []byte {
	n := c.number()
	if n > uint64(len(c.data)) {
		c.data, c.err = nil, errTruncated
		return nil
	}
	b := c.data[:n:n]
	c.data = c.data[n:]
	return b
}

func (c *cursor) text() string { return string(c.bytes()) }

// codec compresses chunks. Equal chunks have to be equal compressed, so one goroutine
// compresses each.
type codec struct {
	once    sync.Once
	encoder *zstd.Encoder
	decoder *zstd.Decoder
	err     error
}

func (c *codec) open() error {
	c.once.Do(func() {
		if c.encoder, c.err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); c.err == nil {
			c.decoder, c.err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPart))
		}
	})
	return errs.Wrap(c.err, errs.Internal, "compressing is impossible")
}

func (c *codec) close() {
	if c.encoder != nil {
		_ = c.encoder.Close()
	}
	if c.decoder != nil {
		c.decoder.Close()
	}
}

// putChunk stores a chunk, and returns its part.
func (d *Destination) putChunk(ctx context.Context, z *codec, c *chunk) (Part, bool, error) {
	if err := z.open(); err != nil {
		return Part{}, false, err
	}
	return d.put(ctx, z.encoder.EncodeAll(c.data, nil))
}

// readChunk calls a function with a cursor at each item of a chunk, until that has read
// all.
func (d *Destination) readChunk(ctx context.Context, z *codec, what, kind string, p Part,
	item func(*cursor) error) error {
	if err := z.open(); err != nil {
		return err
	}
	packed, err := d.read(ctx, what, p)
	if err != nil {
		return err
	}
	data, err := z.decoder.DecodeAll(packed, nil)
	if err != nil {
		return d.lost(what, p, "can't be decompressed")
	}
	rest, ok := bytes.CutPrefix(data, []byte(kind))
	if !ok {
		return d.lost(what, p, "has another kind of data")
	}
	for c := (&cursor{data: rest}); c.more(); {
		if err := item(c); err != nil {
			return err
		}
		if c.err != nil {
			return d.lost(what, p, c.err.Error())
		}
	}
	return nil
}
