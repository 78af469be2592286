package driver_test

import (
	"testing"

	"belfry/pkg/store/driver"
)

func TestAPageIsFullByRecordsOrBytes(t *testing.T) {
	record := func(size int) driver.Record { return driver.Record{Body: make([]byte, size)} }
	for name, c := range map[string]struct {
		sizes []int
		limit int
		added int
	}{
		"all fit":                            {[]int{1, 2, 3}, 3, 3},
		"too many":                           {[]int{1, 2, 3}, 2, 2},
		"too large together":                 {[]int{40, 60, 1}, 9, 2},
		"one that is too large is alone":     {[]int{101, 1}, 9, 1},
		"one that is too large comes later":  {[]int{1, 101}, 9, 1},
		"a page of one record of every size": {[]int{1000, 1000}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var page driver.Page
			added := 0
			for i, size := range c.sizes {
				if !page.Append(record(size), []byte{byte(i)}, c.limit, 100) {
					break
				}
				added++
			}
			if added != c.added || len(page.Records) != added {
				t.Fatalf("%d records were added, want %d", added, c.added)
			}
			if full := added < len(c.sizes); full != (page.Next != nil) ||
				full && string(page.Next) != string([]byte{byte(added - 1)}) {
				t.Errorf("next is %v", page.Next)
			}
		})
	}
}
