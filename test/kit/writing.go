package kit

import (
	"slices"
	"sync"
)

// Writing calls write in several goroutines at once until stop is called. write makes the n-th write of its goroutine
// and returns what names it; false ends the goroutine. acknowledged returns the names of all that were made.
func Writing(goroutines int, write func(goroutine, n int) (string, bool)) (acknowledged func() []string, stop func()) {
	var mu sync.Mutex
	var all []string
	var writing sync.WaitGroup
	stopped := make(chan struct{})
	for g := range goroutines {
		writing.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stopped:
					return
				default:
				}
				one, ok := write(g, n)
				if !ok {
					return
				}
				mu.Lock()
				all = append(all, one)
				mu.Unlock()
			}
		})
	}
	acknowledged = func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
	return acknowledged, func() { close(stopped); writing.Wait() }
}
