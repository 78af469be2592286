package storetest

import (
	"fmt"
	"strings"

	"belfry/pkg/store/driver"
)

func indexTests() []test {
	return []test{
		{"a new index is filled from the records", newIndexIsFilled},
		{"a dropped index does not affect the others", droppedIndex},
		{"an index that is added again has current keys only", indexAddedAgain},
		{"an index with a different number of parts is a new index", indexChanges},
		{"a filled index is updated by later writes", filledIndexFollows},
	}
}

func newIndexIsFilled(f *fixture) {
	const n = 40
	s := f.open("Books", byColor)
	for i := range n {
		s.put(fmt.Sprintf("n%03d", i), 0, uint64(i+1),
			keyed("color", fmt.Sprint(i%3)).and("tag", fmt.Sprint(i%10)).and("tag", "all"))
	}
	for i := 0; i < n; i += 2 {
		s.put(fmt.Sprintf("n%03d", i), uint64(i+1), uint64(n+i+1), nil)
	}
	s = f.open("Books", byColor, byTag)
	var want []string
	for i := 3; i < n; i += 10 {
		want = append(want, fmt.Sprintf("n%03d", i))
	}
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("3"), Limit: 3}, strings.Join(want, " "))
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("4")}, "")
	s.wantMatches(driver.Query{Index: "color", Equal: parts("0"), From: nil, Limit: 1000}, everySixth(3, n))
	s.wantRecord("n003", 4, keyed("color", "0").and("tag", "3").and("tag", "all"))
}

// everySixth returns the UUIDs of the odd numbers that are divisible by three.
func everySixth(from, n int) string {
	var names []string
	for i := from; i < n; i += 6 {
		names = append(names, fmt.Sprintf("n%03d", i))
	}
	return strings.Join(names, " ")
}

func droppedIndex(f *fixture) {
	s := f.open("Books", byColor, byTag)
	s.put("a", 0, 1, keyed("color", "red").and("tag", "x"))
	s = f.open("Books", byColor)
	s.wantMatches(driver.Query{Index: "color"}, "a")
	s.put("a", 1, 2, keyed("color", "blue").and("tag", "y"))
	s.wantMatches(driver.Query{Index: "color", Equal: parts("blue")}, "a")
	s.put("a", 2, 3, nil)
	s.wantMatches(driver.Query{Index: "color"}, "")
}

func indexAddedAgain(f *fixture) {
	s := f.open("Books", byColor, byTag)
	s.put("a", 0, 1, keyed("tag", "old"))
	s.put("b", 0, 2, keyed("tag", "old"))
	s.put("c", 0, 3, keyed("tag", "old"))
	s = f.open("Books", byColor)
	s.put("a", 1, 4, keyed("tag", "new"))
	s.put("b", 2, 5, nil)
	s = f.open("Books", byColor, byTag)
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("old")}, "c")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("new")}, "a")
}

func indexChanges(f *fixture) {
	s := f.open("Books", driver.Index{Name: "x", Parts: 1})
	s.put("a", 0, 1, keyed("x", "1"))
	s.wantMatches(driver.Query{Index: "x", Equal: parts("1")}, "a")
	s = f.open("Books")
	s.put("a", 1, 2, keyed("x", "1", "2"))
	s.put("b", 0, 3, keyed("x", "1", "1"))
	s = f.open("Books", driver.Index{Name: "x", Parts: 2})
	s.wantMatches(driver.Query{Index: "x", Equal: parts("1")}, "b a")
	s.wantMatches(driver.Query{Index: "x", Equal: parts("1", "2")}, "a")
}

func filledIndexFollows(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 1, keyed("tag", "x"))
	s.put("b", 0, 2, keyed("tag", "x"))
	s = f.open("Books", byTag)
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, "a b")
	s.put("a", 1, 3, keyed("tag", "y"))
	s.put("b", 2, 4, nil)
	s.put("c", 0, 5, keyed("tag", "x"))
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("x")}, "c")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("y")}, "a")
	s.wantPending("a/1", "a/3", "b/2", "b/4", "c/5")
}
