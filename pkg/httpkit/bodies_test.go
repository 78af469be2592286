package httpkit

import (
	"sync"
	"testing"

	"belfry/pkg/errs"
)

// Bodies that are sent slowly hold so much memory and no more: of one network address, and of all.
func TestBodiesInFlightAreBounded(t *testing.T) {
	const most = 4 << 20
	all := newBodies(most)
	var open []*body
	send := func(address string, bytes int) error {
		b := all.begin(address)
		open = append(open, b)
		for to := 4 << 10; to < 2*bytes; to *= 2 { // as the buffer grows
			if err := b.grow(min(to, bytes)); err != nil {
				return err
			}
		}
		return nil
	}
	sent := 0
	for ; sent < 100; sent++ {
		if err := send("192.0.2.1", most); err != nil {
			if errs.KindOf(err) != errs.Limited {
				t.Fatal(err)
			}
			break
		}
	}
	if sent < 2 || sent > 4 {
		t.Errorf("an address sends %d bodies of the largest size at once", sent)
	}
	if err := send("192.0.2.1", 4<<10); err != nil {
		t.Errorf("a small body of the same address: %v", err)
	}
	if err := send("2001:db8::1", most); err != nil {
		t.Errorf("another address: %v", err)
	}
	if err := send("2001:db8::2", 4*most); errs.KindOf(err) != errs.Limited {
		t.Errorf("another address of the same customer: %v", err)
	}
	var busy error
	for i := range 100 {
		if busy = send(string(rune('a'+i)), most); busy != nil {
			break
		}
	}
	if errs.KindOf(busy) != errs.Unavailable {
		t.Errorf("many addresses: %v", busy)
	}
	if all.used > all.total {
		t.Errorf("%d bytes are in use", all.used)
	}
	var ending sync.WaitGroup
	for _, b := range open {
		ending.Go(func() { b.end(); b.end() })
	}
	ending.Wait()
	if all.used != 0 || len(all.byAddress) != 0 {
		t.Errorf("left: %d bytes of %d addresses", all.used, len(all.byAddress))
	}
}
