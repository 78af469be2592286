package storetest

import (
	"fmt"
	"strings"

	"belfry/pkg/store/driver"
)

func indexTests() []test {
	return []test{
		{"a new index is filled from the records", newIndexIsFilled},
		{"a dropped index leaves the others alone", droppedIndex},
		{"an index that comes back holds only what is", indexComesBack},
		{"an index of the same name with other parts is a new one", indexChanges},
		{"a filled index follows later writes", filledIndexFollows},
	}
}

func newIndexIsFilled(w *world) {
	const n = 300
	s := w.open("Books", byColour)
	for i := range n {
		s.put(fmt.Sprintf("n%03d", i), 0, uint64(i+1), keyed("colour", fmt.Sprint(i%3)).and("tag", fmt.Sprint(i%10)).and("tag", "all"))
	}
	for i := 0; i < n; i += 2 {
		s.put(fmt.Sprintf("n%03d", i), uint64(i+1), uint64(n+i+1), nil)
	}
	s = w.open("Books", byColour, byTag)
	var want []string
	for i := 3; i < n; i += 10 {
		want = append(want, fmt.Sprintf("n%03d", i))
	}
	s.finds(driver.Query{Index: "tag", Equal: parts("3"), Limit: 7}, strings.Join(want, " "))
	s.finds(driver.Query{Index: "tag", Equal: parts("4")}, "")
	s.finds(driver.Query{Index: "colour", Equal: parts("0"), From: nil, Limit: 1000}, everySixth(3, n))
	s.holds("n003", 4, keyed("colour", "0").and("tag", "3").and("tag", "all"))
}

// everySixth lists the uuids of odd numbers that are divisible by three.
func everySixth(from, n int) string {
	var names []string
	for i := from; i < n; i += 6 {
		names = append(names, fmt.Sprintf("n%03d", i))
	}
	return strings.Join(names, " ")
}

func droppedIndex(w *world) {
	s := w.open("Books", byColour, byTag)
	s.put("a", 0, 1, keyed("colour", "red").and("tag", "x"))
	s = w.open("Books", byColour)
	s.finds(driver.Query{Index: "colour"}, "a")
	s.put("a", 1, 2, keyed("colour", "blue").and("tag", "y"))
	s.finds(driver.Query{Index: "colour", Equal: parts("blue")}, "a")
	s.put("a", 2, 3, nil)
	s.finds(driver.Query{Index: "colour"}, "")
}

func indexComesBack(w *world) {
	s := w.open("Books", byColour, byTag)
	s.put("a", 0, 1, keyed("tag", "old"))
	s.put("b", 0, 2, keyed("tag", "old"))
	s.put("c", 0, 3, keyed("tag", "old"))
	s = w.open("Books", byColour)
	s.put("a", 1, 4, keyed("tag", "new"))
	s.put("b", 2, 5, nil)
	s = w.open("Books", byColour, byTag)
	s.finds(driver.Query{Index: "tag", Equal: parts("old")}, "c")
	s.finds(driver.Query{Index: "tag", Equal: parts("new")}, "a")
}

func indexChanges(w *world) {
	s := w.open("Books", driver.Index{Name: "x", Parts: 1})
	s.put("a", 0, 1, keyed("x", "1"))
	s.finds(driver.Query{Index: "x", Equal: parts("1")}, "a")
	s = w.open("Books")
	s.put("a", 1, 2, keyed("x", "1", "2"))
	s.put("b", 0, 3, keyed("x", "1", "1"))
	s = w.open("Books", driver.Index{Name: "x", Parts: 2})
	s.finds(driver.Query{Index: "x", Equal: parts("1")}, "b a")
	s.finds(driver.Query{Index: "x", Equal: parts("1", "2")}, "a")
}

func filledIndexFollows(w *world) {
	s := w.open("Books")
	s.put("a", 0, 1, keyed("tag", "x"))
	s.put("b", 0, 2, keyed("tag", "x"))
	s = w.open("Books", byTag)
	s.finds(driver.Query{Index: "tag"}, "a b")
	s.put("a", 1, 3, keyed("tag", "y"))
	s.put("b", 2, 4, nil)
	s.put("c", 0, 5, keyed("tag", "x"))
	s.finds(driver.Query{Index: "tag", Equal: parts("x")}, "c")
	s.finds(driver.Query{Index: "tag", Equal: parts("y")}, "a")
	s.waits("a/1", "a/3", "b/2", "b/4", "c/5")
}
