package storetest

import (
	"bytes"
	"fmt"
	"strings"

	"belfry/pkg/store/driver"
)

// What every backend must bear. A client writes at most 256 KiB, but arrays
// that the server keeps in a record let it grow.
const (
	largestBody    = 1536 << 10
	largestPayload = 256 << 10
	longestUUID    = 200
)

func limitTests() []test {
	return []test{
		{"a body grows to 1.5 MiB and shrinks again", largeBody},
		{"an event has up to 256 KiB beside a large body", largeEvent},
		{"a uuid has up to 200 characters", longUUID},
		{"a key has up to four parts of 256 bytes", longKeys},
		{"a record has a hundred keys", manyKeys},
		{"hundreds of events wait in one record", manyEvents},
	}
}

func largeBody(w *world) {
	s := w.open("Books", byColour)
	revision := uint64(0)
	for _, size := range []int{1, 64 << 10, 256 << 10, 400 << 10, 1 << 20, largestBody, 10} {
		d := keyed("colour", "red")
		d.Text = strings.Repeat("x", size-min(size, len(d.encode())))
		s.put("a", revision, revision+1, d)
		revision++
		s.holds("a", revision, d)
		s.clearAll(1)
	}
	s.finds(driver.Query{Index: "colour"}, "a")
}

func largeEvent(w *world) {
	s := w.open("Books")
	d := text(strings.Repeat("x", largestBody-100))
	payload := bytes.Repeat([]byte("y"), largestPayload)
	write := s.write("a", 0, 1, d)
	write.Event.Payload = payload
	w.must(s.Put(w.ctx, write))
	s.holds("a", 1, d)
	w.eventually(func() error {
		events, err := s.allPending(10)
		if err != nil || len(events) != 1 || !bytes.Equal(events[0].Payload, payload) {
			return fmt.Errorf("%d events wait, want one with its payload; error %w", len(events), err)
		}
		return nil
	})
	write = s.write("a", 1, 2, nil)
	write.Event.Payload = payload
	w.must(s.Put(w.ctx, write))
	s.holds("a", 2, nil)
}

func longUUID(w *world) {
	s := w.open("Books", byColour)
	uuid := strings.Repeat("u", longestUUID)
	near := uuid[1:]
	s.put(uuid, 0, 1, keyed("colour", "red"))
	s.put(near, 0, 2, keyed("colour", "red"))
	s.holds(uuid, 1, keyed("colour", "red"))
	s.finds(driver.Query{Index: "colour"}, near+" "+uuid)
	s.scans(near + " " + uuid)
	s.waits(eventOf(uuid, 1).ID, eventOf(near, 2).ID)
	s.put(uuid, 1, 3, nil)
	s.finds(driver.Query{Index: "colour"}, near)
}

func longKeys(w *world) {
	s := w.open("Books", driver.Index{Name: "wide", Parts: 4})
	for i, c := range []string{"\x00", "a", "\xff"} {
		long := strings.Repeat(c, driver.MaxPart)
		s.put(fmt.Sprint("u", i), 0, uint64(i+1), keyed("wide", long, long, long, long))
	}
	s.finds(driver.Query{Index: "wide"}, "u0 u1 u2")
	s.finds(driver.Query{Index: "wide", Limit: 1}, "u0 u1 u2")
	for i, c := range []string{"\x00", "a", "\xff"} {
		long := strings.Repeat(c, driver.MaxPart)
		s.finds(driver.Query{Index: "wide", Equal: parts(long, long, long, long)}, fmt.Sprint("u", i))
		s.finds(driver.Query{Index: "wide", Equal: parts(long, long, long), From: []byte(long), To: []byte(long)}, fmt.Sprint("u", i))
	}
}

func manyKeys(w *world) {
	s := w.open("Books", byTag)
	d, fewer := &doc{}, &doc{}
	for i := range 100 {
		d.and("tag", fmt.Sprintf("t%02d", i))
		if i%2 == 0 {
			fewer.and("tag", fmt.Sprintf("t%02d", i))
		}
	}
	s.put("a", 0, 1, d)
	for _, i := range []int{0, 49, 99} {
		s.finds(driver.Query{Index: "tag", Equal: parts(fmt.Sprintf("t%02d", i))}, "a")
	}
	s.put("a", 1, 2, fewer)
	s.finds(driver.Query{Index: "tag", Equal: parts("t98")}, "a")
	s.finds(driver.Query{Index: "tag", Equal: parts("t99")}, "")
}

func manyEvents(w *world) {
	s := w.open("Books")
	const n = 300
	for i := range uint64(n) {
		s.put("a", i, i+1, text(fmt.Sprint(i)))
	}
	s.waitsInOrder("a", n)
	s.clearAll(n)
	s.waitsInOrder("a", 0)
	s.holds("a", n, text(fmt.Sprint(n-1)))
}
