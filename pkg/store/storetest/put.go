package storetest

import (
	"bytes"
	"fmt"

	"belfry/pkg/store/driver"
)

func putTests() []test {
	return []test{
		{"Get returns the record that was put", putThenGet},
		{"Get finds no record that was not put", getFindsNothing},
		{"a create needs absence of a live record", createNeedsAbsence},
		{"an update needs a record", updateNeedsRecord},
		{"an update needs the current revision", updateNeedsRevision},
		{"revisions increase", revisionsIncrease},
		{"a mismatch changes nothing", mismatchChangesNothing},
		{"a body is binary data", bodyIsBinary},
		{"a store keeps no reference to its arguments", keepsNoReference},
		{"UUIDs are distinct", uuidsAreDistinct},
		{"records are counted", recordsAreCounted},
	}
}

func putThenGet(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 7, text("one"))
	s.wantRecord("a", 7, text("one"))
	s.put("a", 7, 8, text("two"))
	s.wantRecord("a", 8, text("two"))
	s.put("a", 8, 1<<63, text("a revision of 64 bits"))
	s.wantRecord("a", 1<<63, text("a revision of 64 bits"))
}

func getFindsNothing(f *fixture) {
	s := f.open("Books")
	s.wantNone("a")
	s.put("a", 0, 1, text("one"))
	s.wantNone("b")
}

func createNeedsAbsence(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 5, text("one"))
	s.wantMismatch("a", 0, 6, text("two"))
	s.wantRecord("a", 5, text("one"))
}

func updateNeedsRecord(f *fixture) {
	s := f.open("Books")
	s.wantMismatch("a", 5, 6, text("one"))
	s.wantNone("a")
}

func updateNeedsRevision(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 5, text("one"))
	s.put("a", 5, 9, text("two"))
	for _, cond := range []uint64{1, 5, 8, 10, 11} {
		s.wantMismatch("a", cond, 12, text("three"))
	}
	s.wantRecord("a", 9, text("two"))
}

func revisionsIncrease(f *fixture) {
	s := f.open("Books")
	s.put("a", 0, 5, text("one"))
	s.wantMismatch("a", 5, 5, text("two"))
	s.wantMismatch("a", 5, 4, text("two"))
	s.wantMismatch("a", 5, 3, nil)
	s.wantRecord("a", 5, text("one"))
}

func mismatchChangesNothing(f *fixture) {
	s := f.open("Books", byColor)
	s.put("a", 0, 5, keyed("color", "red"))
	s.wantMismatch("a", 4, 6, keyed("color", "blue"))
	s.wantMismatch("a", 0, 7, keyed("color", "blue"))
	s.wantMismatch("a", 4, 8, nil)
	s.wantMatches(driver.Query{Index: "color", Equal: parts("red")}, "a")
	s.wantMatches(driver.Query{Index: "color", Equal: parts("blue")}, "")
	s.wantPending("a/5")
}

func bodyIsBinary(f *fixture) {
	s := f.open("Books")
	body := make([]byte, 0, 512)
	for i := range 512 {
		body = append(body, byte(i))
	}
	f.must(s.Put(f.ctx, driver.Write{UUID: "a", Revision: 1, Body: body, Event: eventOf("a", 1)}))
	got, ok, err := s.Get(f.ctx, "a")
	if !ok || err != nil || !bytes.Equal(got.Body, body) {
		f.Fatalf("got %v, %v, %q", ok, err, got.Body)
	}
}

func keepsNoReference(f *fixture) {
	s := f.open("Books", byColor)
	write := s.write("a", 0, 1, keyed("color", "red"))
	want := bytes.Clone(write.Body)
	f.must(s.Put(f.ctx, write))
	clear(write.Body)
	clear(write.Event.Payload)
	clear(write.Keys[0].Parts[0])
	got, _, err := s.Get(f.ctx, "a")
	f.must(err)
	if !bytes.Equal(got.Body, want) {
		f.Fatalf("the body changed to %q with the buffer that was passed to Put", got.Body)
	}
	s.put("b", 0, 2, text("two"))
	if !bytes.Equal(got.Body, want) {
		f.Fatalf("a later Put changed the body that Get returned to %q", got.Body)
	}
	s.wantPending("a/1", "b/2")
	s.wantMatches(driver.Query{Index: "color", Equal: parts("red")}, "a")
}

func uuidsAreDistinct(f *fixture) {
	s := f.open("Books")
	names := []string{"a", "A", "aa", "a.", "a-", "a_", "a@", "a+", "a@example.com_email", "0", "00"}
	for i, uuid := range names {
		s.put(uuid, 0, uint64(i+1), text("of "+uuid))
	}
	for i, uuid := range names {
		s.wantRecord(uuid, uint64(i+1), text("of "+uuid))
	}
}

func recordsAreCounted(f *fixture) {
	s := f.open("Books")
	if records, pending, err := s.Count(f.ctx); records < 0 || pending < 0 || err != nil {
		f.Fatalf("Count: %d, %d, %v", records, pending, err)
	}
	if !f.harness.Features.ExactCount {
		return
	}
	s.wantCount(0, 0)
	s.put("a", 0, 1, text("one"))
	s.put("b", 0, 2, text("two"))
	s.put("a", 1, 3, text("three"))
	s.wantCount(2, 3)
	s.put("a", 3, 4, nil)
	s.wantMismatch("b", 1, 5, nil)
	s.wantCount(1, 4)
	s.put("a", 0, 6, text("again"))
	s.wantCount(2, 5)
	f.must(s.Clear(f.ctx, s.pending()))
	f.must(s.Clear(f.ctx, []driver.Pending{{Event: eventOf("a", 1), UUID: "a", Revision: 1}}))
	s.wantCount(2, 0)
}

// wantCount asserts what Count returns.
func (s *testStore) wantCount(records, pending int64) {
	s.f.Helper()
	s.f.eventually(func() error {
		gotRecords, gotPending, err := s.Count(s.f.ctx)
		if err == nil && (gotRecords != records || gotPending != pending) {
			err = fmt.Errorf("counted %d records and %d events, want %d and %d", gotRecords, gotPending, records,
				pending)
		}
		return err
	})
}
