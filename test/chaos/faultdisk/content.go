package faultdisk

import (
	"maps"
	"math/rand/v2"
	"slices"
)

const pageSize = 4096

// endsKept is enough for what a program writes between two syncs.
const endsKept = 1024

type page [pageSize]byte

// before is what a page was when the file was last synced; nil: there was none.
type before struct {
	page *page
	// lost says that a sync failed after the page was written. A later sync does not write it, as the
	// kernel considers a page clean whose write-back has failed.
	lost bool
}

// content is the content of a file: as it is read, and what of it a power cut takes back.
type content struct {
	size  int64
	pages map[int64]*page // one that is missing is zero

	renewed bool             // durable content was cut off altogether
	durable int64            // the size when it was last synced
	ends    []int64          // the sizes that the file had since, as it grew
	undo    map[int64]before // by page that was written since
}

func newContent() content { return content{pages: map[int64]*page{}, undo: map[int64]before{}} }

// pagesAfter is how many pages the content has once this much is written there.
func (c *content) pagesAfter(offset int64, size int) int {
	added := 0
	if size > 0 {
		for n := offset / pageSize; n <= (offset+int64(size)-1)/pageSize; n++ {
			if c.pages[n] == nil {
				added++
			}
		}
	}
	return len(c.pages) + added
}

// change returns a page that may be changed.
func (c *content) change(n int64) *page {
	now := c.pages[n]
	was, changed := c.undo[n]
	if !changed {
		was.page = now
	}
	was.lost = false
	c.undo[n] = was
	if now == nil || !changed {
		fresh := &page{}
		if now != nil {
			*fresh = *now
		}
		c.pages[n], now = fresh, fresh
	}
	return now
}

func (c *content) write(offset int64, data []byte) {
	if end := offset + int64(len(data)); end > c.size {
		c.size = end
		if len(c.ends) < endsKept {
			c.ends = append(c.ends, end)
		}
	}
	for len(data) > 0 {
		n := copy(c.change(offset / pageSize)[offset%pageSize:], data)
		offset, data = offset+int64(n), data[n:]
	}
}

// read fills the buffer as far as the content goes.
func (c *content) read(offset int64, buffer []byte) int {
	if offset >= c.size {
		return 0
	}
	buffer = buffer[:min(int64(len(buffer)), c.size-offset)]
	for read := 0; read < len(buffer); {
		at := offset + int64(read)
		into := buffer[read:min(len(buffer), read+int(pageSize-at%pageSize))]
		if p := c.pages[at/pageSize]; p != nil {
			copy(into, p[at%pageSize:])
		} else {
			clear(into)
		}
		read += len(into)
	}
	return len(buffer)
}

// resize cuts the content off or extends it by zeros.
func (c *content) resize(size int64) {
	if size < c.size {
		c.zero(size, c.size)
		c.renewed = c.renewed || size == 0 && c.durable > 0
	}
	c.size = size
}

// zero clears a range, and removes the pages that are all in it.
func (c *content) zero(from, to int64) {
	for n := range maps.Keys(c.pages) {
		first, end := n*pageSize, (n+1)*pageSize
		switch {
		case end <= from || first >= to:
		case first >= from && (end <= to || to >= c.size):
			c.change(n)
			delete(c.pages, n)
		default:
			clear(c.change(n)[max(from-first, 0):min(to-first, pageSize)])
		}
	}
}

// sync makes the content durable, except for pages that an earlier sync has lost.
func (c *content) sync() {
	c.durable, c.renewed, c.ends = c.size, false, nil
	maps.DeleteFunc(c.undo, func(_ int64, was before) bool { return !was.lost })
}

// loseSync is a sync that fails.
func (c *content) loseSync() {
	for n, was := range c.undo {
		was.lost = true
		c.undo[n] = was
	}
}

// cut takes back what is not synced: all of it without r. With r some of it was written before the power
// failed: a part of what was appended, which ends with a write or with a page, and any of the pages that
// were overwritten.
func (c *content) cut(r *rand.Rand) {
	size, shrunk := c.durable, c.size < c.durable
	switch {
	case r != nil && shrunk && r.IntN(2) == 0:
		size = c.size
	case r != nil && !shrunk:
		size = c.grown(r)
	}
	for _, n := range slices.Sorted(maps.Keys(c.undo)) {
		was, first := c.undo[n], n*pageSize
		appended := first+pageSize > c.durable && size > c.durable // written before the size is
		if r != nil && !was.lost && (appended || first < c.size && r.IntN(2) == 0) {
			continue
		}
		if was.page == nil {
			delete(c.pages, n)
		} else {
			c.pages[n] = was.page
		}
	}
	c.size = max(c.size, size)
	c.resize(size)
	c.undo, c.durable, c.renewed, c.ends = map[int64]before{}, size, false, nil
}

// grown returns a size that the file may have when the power fails while it grows.
func (c *content) grown(r *rand.Rand) int64 {
	sizes := []int64{c.durable, c.size}
	for _, end := range c.ends {
		if end > c.durable && end < c.size {
			sizes = append(sizes, end)
		}
	}
	if first, last := c.durable/pageSize+1, (c.size-1)/pageSize; last >= first {
		sizes = append(sizes, (first+r.Int64N(last-first+1))*pageSize)
	}
	return sizes[r.IntN(len(sizes))]
}
