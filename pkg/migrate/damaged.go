package migrate

import "sync"

// damaged collects contents that are not what their hash says.
type damaged struct {
	mu  sync.Mutex
	got map[string]string
}

func (d *damaged) add(hash, got string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.got == nil {
		d.got = map[string]string{}
	}
	d.got[hash] = got
}

func (d *damaged) hash(of string) (got string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	got, ok = d.got[of]
	return got, ok
}
