package storetest

import (
	"bytes"
	"fmt"

	"belfry/pkg/store/driver"
)

func putTests() []test {
	return []test{
		{"what was put is got", putThenGet},
		{"nothing is there before", nothingBefore},
		{"creating needs absence", createNeedsAbsence},
		{"updating needs the record", updateNeedsRecord},
		{"updating needs the revision", updateNeedsRevision},
		{"revisions grow", revisionsGrow},
		{"a refused write leaves no trace", refusedLeavesNoTrace},
		{"a body is any bytes", bodyIsAnyBytes},
		{"a store keeps no hold of what it was given", keepsNoHold},
		{"uuids are told apart", uuidsAreToldApart},
		{"records are counted", recordsAreCounted},
	}
}

func putThenGet(w *world) {
	s := w.open("Books")
	s.put("a", 0, 7, text("one"))
	s.holds("a", 7, text("one"))
	s.put("a", 7, 8, text("two"))
	s.holds("a", 8, text("two"))
	s.put("a", 8, 1<<63, text("a revision of 64 bits"))
	s.holds("a", 1<<63, text("a revision of 64 bits"))
}

func nothingBefore(w *world) {
	s := w.open("Books")
	s.lacks("a")
	s.put("a", 0, 1, text("one"))
	s.lacks("b")
}

func createNeedsAbsence(w *world) {
	s := w.open("Books")
	s.put("a", 0, 5, text("one"))
	s.refuses("a", 0, 6, text("two"))
	s.holds("a", 5, text("one"))
}

func updateNeedsRecord(w *world) {
	s := w.open("Books")
	s.refuses("a", 5, 6, text("one"))
	s.lacks("a")
}

func updateNeedsRevision(w *world) {
	s := w.open("Books")
	s.put("a", 0, 5, text("one"))
	s.put("a", 5, 9, text("two"))
	for _, cond := range []uint64{1, 5, 8, 10, 11} {
		s.refuses("a", cond, 12, text("three"))
	}
	s.holds("a", 9, text("two"))
}

func revisionsGrow(w *world) {
	s := w.open("Books")
	s.put("a", 0, 5, text("one"))
	s.refuses("a", 5, 5, text("two"))
	s.refuses("a", 5, 4, text("two"))
	s.refuses("a", 5, 3, nil)
	s.holds("a", 5, text("one"))
}

func refusedLeavesNoTrace(w *world) {
	s := w.open("Books", byColour)
	s.put("a", 0, 5, keyed("colour", "red"))
	s.refuses("a", 4, 6, keyed("colour", "blue"))
	s.refuses("a", 0, 7, keyed("colour", "blue"))
	s.refuses("a", 4, 8, nil)
	s.finds(driver.Query{Index: "colour", Equal: parts("red")}, "a")
	s.finds(driver.Query{Index: "colour", Equal: parts("blue")}, "")
	s.waits("a/5")
}

func bodyIsAnyBytes(w *world) {
	s := w.open("Books")
	body := make([]byte, 0, 512)
	for i := range 512 {
		body = append(body, byte(i))
	}
	w.must(s.Put(w.ctx, driver.Write{UUID: "a", Revision: 1, Body: body, Event: eventOf("a", 1)}))
	got, ok, err := s.Get(w.ctx, "a")
	if !ok || err != nil || !bytes.Equal(got.Body, body) {
		w.Fatalf("got %v, %v, %q", ok, err, got.Body)
	}
}

func keepsNoHold(w *world) {
	s := w.open("Books", byColour)
	write := s.write("a", 0, 1, keyed("colour", "red"))
	want := bytes.Clone(write.Body)
	w.must(s.Put(w.ctx, write))
	clear(write.Body)
	clear(write.Event.Payload)
	clear(write.Keys[0].Parts[0])
	got, _, err := s.Get(w.ctx, "a")
	w.must(err)
	if !bytes.Equal(got.Body, want) {
		w.Fatalf("the body changed to %q with the buffer that Put was given", got.Body)
	}
	s.put("b", 0, 2, text("two"))
	if !bytes.Equal(got.Body, want) {
		w.Fatalf("the body that Get returned changed to %q by a later Put", got.Body)
	}
	s.waits("a/1", "b/2")
	s.finds(driver.Query{Index: "colour", Equal: parts("red")}, "a")
}

func uuidsAreToldApart(w *world) {
	s := w.open("Books")
	names := []string{"a", "A", "aa", "a.", "a-", "a_", "a@", "a+", "a@example.com_email", "0", "00"}
	for i, uuid := range names {
		s.put(uuid, 0, uint64(i+1), text("of "+uuid))
	}
	for i, uuid := range names {
		s.holds(uuid, uint64(i+1), text("of "+uuid))
	}
}

func recordsAreCounted(w *world) {
	s := w.open("Books")
	if records, pending, err := s.Count(w.ctx); records < 0 || pending < 0 || err != nil {
		w.Fatalf("Count: %d, %d, %v", records, pending, err)
	}
	if !w.harness.Features.ExactCount {
		return
	}
	s.counts(0, 0)
	s.put("a", 0, 1, text("one"))
	s.put("b", 0, 2, text("two"))
	s.put("a", 1, 3, text("three"))
	s.counts(2, 3)
	s.put("a", 3, 4, nil)
	s.refuses("b", 1, 5, nil)
	s.counts(1, 4)
	s.put("a", 0, 6, text("again"))
	s.counts(2, 5)
	w.must(s.Clear(w.ctx, s.pending()))
	w.must(s.Clear(w.ctx, []driver.Pending{{Event: eventOf("a", 1), UUID: "a", Revision: 1}}))
	s.counts(2, 0)
}

// counts asserts what Count returns.
func (s *shelf) counts(records, pending int64) {
	s.w.Helper()
	s.w.eventually(func() error {
		gotRecords, gotPending, err := s.Count(s.w.ctx)
		if err == nil && (gotRecords != records || gotPending != pending) {
			err = fmt.Errorf("counted %d records and %d events, want %d and %d", gotRecords, gotPending, records, pending)
		}
		return err
	})
}
