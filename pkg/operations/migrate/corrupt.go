package migrate

import "sync"

// corruptContents collects contents that don't match their hash.
type corruptContents struct {
	mu  sync.Mutex
	got map[string]string
}

func (d *corruptContents) add(hash, got string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.got == nil {
		d.got = map[string]string{}
	}
	d.got[hash] = got
}

func (d *corruptContents) hash(of string) (got string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	got, ok = d.got[of]
	return got, ok
}
