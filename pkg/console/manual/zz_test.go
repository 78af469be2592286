package manual_test

import (
	"belfry/pkg/console/manual"
	"fmt"
	"testing"
)

func TestShow(t *testing.T) {
	for _, q := range questions {
		fmt.Println("##", q)
		for i, h := range manual.Search(q) {
			if i > 4 {
				break
			}
			fmt.Printf("   %-14s %s > %s  %s\n        ", h.Part, h.Title, h.Section, h.URL)
			for _, s := range h.Excerpt {
				if s.Mark {
					fmt.Printf("[%s]", s.Text)
				} else {
					fmt.Print(s.Text)
				}
			}
			fmt.Println()
		}
	}
}
