package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// The part costs: requests that are made to be expensive, one at a time.
const (
	costRequests = 10
	costBytes    = 4<<20 - 1<<10
)

// costly are bodies of the largest size, by what is expensive about them.
func costly() map[string][]byte {
	repeat := func(text string) string { return strings.Repeat(text, costBytes/len(text)) }
	var members strings.Builder
	for i := 0; members.Len() < costBytes-32; i++ {
		fmt.Fprintf(&members, `"%x":0,`, i)
	}
	return map[string][]byte{
		"members":        []byte(`{` + members.String() + `"":0}`),
		"objects":        []byte(`{"a":[` + repeat("{},") + `{}]}`),
		"nested objects": []byte(strings.Repeat(`{"a":`, 60) + `{"b":"` + repeat("a") + `"}` + strings.Repeat(`}`, 60)),
		"escapes":        []byte(`{"a":"` + repeat(`\u0061`) + `"}`),
	}
}

// costs prints the processor time of requests that are refused for their size. TestWhatRoutesCost (pkg/app) bounds what
// they allocate.
func (b *bench) costs(ctx context.Context) error {
	s, err := b.serve(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.stop() }()
	for _, path := range []string{"/items", "/batch", "/auth/email"} {
		for name, body := range costly() {
			before := s.cpu()
			for range costRequests {
				// Some are refused before they have been read, which ends the connection.
				c, err := dial(s.base)
				if err != nil {
					return err
				}
				status, err := c.do("POST", path, body)
				c.close()
				if err == nil && (status < 400 || status >= 500) {
					return fmt.Errorf("POST %s of %s: %d", path, name, status)
				}
			}
			fmt.Printf("costs: POST %s of 4 MiB, %s: %v of processor time\n", path, name,
				((s.cpu() - before) / costRequests).Round(100*time.Microsecond))
		}
	}
	return nil
}
