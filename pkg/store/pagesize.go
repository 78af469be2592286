package store

import "belfry/pkg/store/driver"

// MaxPageBytes is how many bytes an encoded page of a list has at most.
const MaxPageBytes = driver.MaxPageBytes

// pageOverhead is how many bytes of an encoded page are for its name and its cursor.
const pageOverhead = 16 << 10

// pageBytes adds up what the objects of a page take when it is encoded.
type pageBytes struct{ bytes, limit int }

func newPageBytes(limit int) pageBytes {
	if limit <= 0 {
		limit = MaxPageBytes
	}
	return pageBytes{limit: limit - pageOverhead}
}

// add adds an object and reports whether the page takes it; the first one always.
func (p *pageBytes) add(o Stored) bool {
	size := p.bytes + len(o.Body) + len(",")
	if p.bytes > 0 && size > p.limit {
		return false
	}
	p.bytes = size
	return true
}
