package s3storage

import (
	"hash/crc32"
	"io"
	"sync"
)

const chunkSize = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunk is a piece of a buffer: a small content needs little memory, and a part
// needs no reallocation.
type chunk [chunkSize]byte

// chunks is a pool of unused chunks.
type chunks struct{ pool sync.Pool }

func newChunks() *chunks { return &chunks{sync.Pool{New: func() any { return new(chunk) }}} }

// buffer has bytes of a content that have not been acknowledged.
type buffer struct {
	free *chunks

	// A request whose response came early may still be read from when the buffer is
	// emptied. It then ends, and reads no bytes of another content.
	mu     sync.RWMutex
	chunks []*chunk
	size   int
}

func (b *buffer) write(p []byte) {
	for len(p) > 0 {
		at := b.size % chunkSize
		if at == 0 {
			b.chunks = append(b.chunks, b.free.pool.Get().(*chunk))
		}
		n := copy(b.chunks[len(b.chunks)-1][at:], p)
		b.size += n
		p = p[n:]
	}
}

// ReadAt implements io.ReaderAt.
func (b *buffer) ReadAt(p []byte, offset int64) (n int, err error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for n < len(p) && offset < int64(b.size) {
		from := b.chunks[offset/chunkSize][offset%chunkSize:]
		if left := int64(b.size) - offset; left < int64(len(from)) {
			from = from[:left]
		}
		k := copy(p[n:], from)
		n += k
		offset += int64(k)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// reader returns a seekable reader of the whole buffer.
func (b *buffer) reader() *io.SectionReader { return io.NewSectionReader(b, 0, int64(b.size)) }

// crc returns the CRC of some bytes followed by those of the buffer.
func (b *buffer) crc(before uint32, of *crc32.Table) uint32 {
	left := b.size
	for _, c := range b.chunks {
		n := min(left, chunkSize)
		before = crc32.Update(before, of, c[:n])
		left -= n
	}
	return before
}

// reset empties the buffer and returns its chunks to the pool.
func (b *buffer) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.chunks {
		b.free.pool.Put(c)
	}
	clear(b.chunks)
	b.chunks, b.size = b.chunks[:0], 0
}
