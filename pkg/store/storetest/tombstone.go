package storetest

import "belfry/pkg/store/driver"

func tombstoneTests() []test {
	return []test{
		{"deleting leaves a tombstone", deleteLeavesTombstone},
		{"a delete needs the current revision", deleteNeedsRevision},
		{"a tombstone is not a live record", tombstoneIsNotLive},
		{"a create over a tombstone needs a higher revision", recreateNeedsHigherRevision},
		{"a UUID may have many incarnations", recreatedRepeatedly},
		{"deleted records are neither scanned nor found", deletedAreNotFound},
		{"a tombstone may be written without a record", tombstoneWithoutRecord},
		{"a tombstone keeps the owner, which a record lacks", tombstoneKeepsOwner},
	}
}

func deleteLeavesTombstone(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 1, text("one"))
	s.put("a", 1, 2, nil)
	s.wantRecord("a", 2, nil)
	s.wantPending("a/1", "a/2")
}

func deleteNeedsRevision(f *fixture) {
	s := f.open("Books")
	s.wantMismatch("a", 1, 2, nil)
	s.put("a", 0, 3, text("one"))
	s.wantMismatch("a", 2, 4, nil)
	s.wantRecord("a", 3, text("one"))
}

func tombstoneIsNotLive(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 1, text("one"))
	s.put("a", 1, 2, nil)
	s.wantMismatch("a", 2, 3, text("two"))
	s.wantMismatch("a", 2, 3, nil)
	s.wantMismatch("a", 1, 3, text("two"))
	s.wantRecord("a", 2, nil)
}

func recreateNeedsHigherRevision(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 10, text("one"))
	s.put("a", 10, 20, nil)
	s.wantMismatch("a", 0, 19, text("two"))
	s.wantMismatch("a", 0, 20, text("two"))
	s.wantRecord("a", 20, nil)
	s.put("a", 0, 21, text("two"))
	s.wantRecord("a", 21, text("two"))
}

func recreatedRepeatedly(f *fixture) {
	s := f.open("Books", byColor)
	revision := uint64(0)
	for range 5 {
		s.put("a", 0, revision+1, keyed("color", "red"))
		s.put("a", revision+1, revision+2, keyed("color", "blue"))
		s.put("a", revision+2, revision+3, nil)
		revision += 3
	}
	s.wantRecord("a", revision, nil)
	s.wantMatches(driver.Query{Index: "color"}, "")
	s.put("a", 0, revision+1, keyed("color", "green"))
	s.wantMatches(driver.Query{Index: "color"}, "a")
	s.wantMatches(driver.Query{Index: "color", Equal: parts("red")}, "")
	s.wantPendingCount("a", 16)
}

func deletedAreNotFound(f *fixture) {
	s := f.open("Books", byColor)
	for i, uuid := range []string{"a", "b", "c"} {
		s.put(uuid, 0, uint64(i+1), keyed("color", "red"))
	}
	s.put("b", 2, 4, nil)
	s.wantScan("a c")
	s.wantMatches(driver.Query{Index: "color", Equal: parts("red")}, "a c")
}

func tombstoneWithoutRecord(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 5, nil)
	s.wantRecord("a", 5, nil)
	s.put("a", 0, 6, nil)
	s.wantRecord("a", 6, nil)
	s.wantPending("a/5", "a/6")
}

func tombstoneKeepsOwner(f *fixture) {
	s := f.open("Books")
	revision := uint64(1)
	for _, owner := range []string{"ann", "", "bob \x00\u00e9"} {
		s.put("a", 0, revision, text("one"))
		w := s.write("a", revision, revision+1, nil)
		w.Owner = owner
		if err := s.Put(f.ctx, w); err != nil {
			f.Fatal(err)
		}
		got, _, err := s.Get(f.ctx, "a")
		if err == nil {
			err = checkRecord(got, driver.Record{UUID: "a", Revision: revision + 1, Deleted: true, Owner: owner})
		}
		if err != nil {
			f.Fatal(err)
		}
		revision += 2
	}
	s.put("a", 0, revision, text("again"))
	s.wantRecord("a", revision, text("again"))
	s.put("a", revision, revision+1, nil)
	s.wantRecord("a", revision+1, nil)
}
