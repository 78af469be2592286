package store

// How many objects are read at once by their uuids. Any may have more than a MiB.
const (
	maxChunk   = 16
	firstChunk = 8       // before anything is known of their size
	chunkBytes = 2 << 20 // that they are meant to have
)

// chunks counts what was read by uuids, a chunk at a time.
type chunks struct {
	objects int
	bytes   int // of these, as they are stored
}

// next returns how many objects to read next: few where those before were large.
func (c *chunks) next() int {
	switch {
	case c.objects == 0:
		return firstChunk
	case c.bytes == 0:
		return maxChunk
	default:
		return max(1, min(maxChunk, chunkBytes*c.objects/c.bytes))
	}
}

func (c *chunks) add(objects, bytes int) {
	c.objects += objects
	c.bytes += bytes
}
