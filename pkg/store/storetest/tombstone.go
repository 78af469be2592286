package storetest

import "belfry/pkg/store/driver"

func tombstoneTests() []test {
	return []test{
		{"deleting leaves a tombstone", deleteLeavesTombstone},
		{"deleting needs the revision", deleteNeedsRevision},
		{"a tombstone is no live record", tombstoneIsNotLive},
		{"creating over a tombstone needs a higher revision", recreateNeedsHigherRevision},
		{"lives of one uuid follow one another", livesFollow},
		{"deleted records are neither scanned nor found", deletedAreNotFound},
		{"a tombstone may be left where nothing was", tombstoneOfNothing},
	}
}

func deleteLeavesTombstone(w *world) {
	s := w.open("Books")
	s.put("a", 0, 1, text("one"))
	s.put("a", 1, 2, nil)
	s.holds("a", 2, nil)
	s.waits("a/1", "a/2")
}

func deleteNeedsRevision(w *world) {
	s := w.open("Books")
	s.refuses("a", 1, 2, nil)
	s.put("a", 0, 3, text("one"))
	s.refuses("a", 2, 4, nil)
	s.holds("a", 3, text("one"))
}

func tombstoneIsNotLive(w *world) {
	s := w.open("Books")
	s.put("a", 0, 1, text("one"))
	s.put("a", 1, 2, nil)
	s.refuses("a", 2, 3, text("two"))
	s.refuses("a", 2, 3, nil)
	s.refuses("a", 1, 3, text("two"))
	s.holds("a", 2, nil)
}

func recreateNeedsHigherRevision(w *world) {
	s := w.open("Books")
	s.put("a", 0, 10, text("one"))
	s.put("a", 10, 20, nil)
	s.refuses("a", 0, 19, text("two"))
	s.refuses("a", 0, 20, text("two"))
	s.holds("a", 20, nil)
	s.put("a", 0, 21, text("two"))
	s.holds("a", 21, text("two"))
}

func livesFollow(w *world) {
	s := w.open("Books", byColour)
	revision := uint64(0)
	for range 5 {
		s.put("a", 0, revision+1, keyed("colour", "red"))
		s.put("a", revision+1, revision+2, keyed("colour", "blue"))
		s.put("a", revision+2, revision+3, nil)
		revision += 3
	}
	s.holds("a", revision, nil)
	s.finds(driver.Query{Index: "colour"}, "")
	s.put("a", 0, revision+1, keyed("colour", "green"))
	s.finds(driver.Query{Index: "colour"}, "a")
	s.finds(driver.Query{Index: "colour", Equal: parts("red")}, "")
	s.waitsInOrder("a", 16)
}

func deletedAreNotFound(w *world) {
	s := w.open("Books", byColour)
	for i, uuid := range []string{"a", "b", "c"} {
		s.put(uuid, 0, uint64(i+1), keyed("colour", "red"))
	}
	s.put("b", 2, 4, nil)
	s.scans("a c")
	s.finds(driver.Query{Index: "colour", Equal: parts("red")}, "a c")
}

func tombstoneOfNothing(w *world) {
	s := w.open("Books")
	s.put("a", 0, 5, nil)
	s.holds("a", 5, nil)
	s.put("a", 0, 6, nil)
	s.holds("a", 6, nil)
	s.waits("a/5", "a/6")
}
