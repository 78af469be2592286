package storetest

import (
	"bytes"
	"fmt"
	"strings"

	"belfry/pkg/store/driver"
)

// The sizes that every backend must accept. A client writes at most 256 KiB, but
// mapped arrays make a record larger.
const (
	largestBody    = 1536 << 10
	largestPayload = 256 << 10
	longestUUID    = 200
)

func limitTests() []test {
	return []test{
		{"a body grows to 1.5 MiB and shrinks again", largeBody},
		{"an event has up to 256 KiB in addition to a large body", largeEvent},
		{"a uuid has up to 200 characters", longUUID},
		{"a key has up to four parts of 256 bytes", longKeys},
		{"a record has a hundred keys", manyKeys},
		{"an index is added over a record with two thousand keys", manyMoreKeys},
		{"a record has a hundred pending events", manyEvents},
	}
}

func largeBody(f *fixture) {
	s := f.open("Books", byColor)
	revision := uint64(0)
	for _, size := range []int{1, 64 << 10, 256 << 10, 400 << 10, 1 << 20, largestBody, 10} {
		d := keyed("color", "red")
		d.Text = strings.Repeat("x", size-min(size, len(d.encode())))
		s.put("a", revision, revision+1, d)
		revision++
		s.wantRecord("a", revision, d)
		s.clearAll(1)
	}
	s.wantMatches(driver.Query{Index: "color"}, "a")
}

func largeEvent(f *fixture) {
	s := f.open("Books")
	d := text(strings.Repeat("x", largestBody-100))
	payload := bytes.Repeat([]byte("y"), largestPayload)
	write := s.write("a", 0, 1, d)
	write.Event.Payload = payload
	f.must(s.Put(f.ctx, write))
	s.wantRecord("a", 1, d)
	f.eventually(func() error {
		events, err := s.allPending(10)
		if err != nil || len(events) != 1 || !bytes.Equal(events[0].Payload, payload) {
			return fmt.Errorf("%d events are pending, want one with its payload; error %w", len(events), err)
		}
		return nil
	})
	write = s.write("a", 1, 2, nil)
	write.Event.Payload = payload
	f.must(s.Put(f.ctx, write))
	s.wantRecord("a", 2, nil)
}

func longUUID(f *fixture) {
	s := f.open("Books", byColor)
	uuid := strings.Repeat("u", longestUUID)
	near := uuid[1:]
	s.put(uuid, 0, 1, keyed("color", "red"))
	s.put(near, 0, 2, keyed("color", "red"))
	s.wantRecord(uuid, 1, keyed("color", "red"))
	s.wantMatches(driver.Query{Index: "color"}, near+" "+uuid)
	s.wantScan(near + " " + uuid)
	s.wantPending(eventOf(uuid, 1).ID, eventOf(near, 2).ID)
	s.put(uuid, 1, 3, nil)
	s.wantMatches(driver.Query{Index: "color"}, near)
}

func longKeys(f *fixture) {
	s := f.open("Books", driver.Index{Name: "wide", Parts: 4})
	for i, c := range []string{"\x00", "a", "\xff"} {
		long := strings.Repeat(c, driver.MaxPart)
		s.put(fmt.Sprint("u", i), 0, uint64(i+1), keyed("wide", long, long, long, long))
	}
	s.wantMatches(driver.Query{Index: "wide"}, "u0 u1 u2")
	s.wantMatches(driver.Query{Index: "wide", Limit: 1}, "u0 u1 u2")
	for i, c := range []string{"\x00", "a", "\xff"} {
		long := strings.Repeat(c, driver.MaxPart)
		s.wantMatches(driver.Query{Index: "wide", Equal: parts(long, long, long, long)}, fmt.Sprint("u", i))
		s.wantMatches(driver.Query{Index: "wide", Equal: parts(long, long, long), From: []byte(long),
			To: []byte(long + "\x00")}, fmt.Sprint("u", i))
	}
}

func manyKeys(f *fixture) {
	s := f.open("Books", byTag)
	d, fewer := &doc{}, &doc{}
	for i := range 100 {
		d.and("tag", fmt.Sprintf("t%02d", i))
		if i%2 == 0 {
			fewer.and("tag", fmt.Sprintf("t%02d", i))
		}
	}
	s.put("a", 0, 1, d)
	for _, i := range []int{0, 49, 99} {
		s.wantMatches(driver.Query{Index: "tag", Equal: parts(fmt.Sprintf("t%02d", i))}, "a")
	}
	s.put("a", 1, 2, fewer)
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("t98")}, "a")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("t99")}, "")
}

func manyEvents(f *fixture) {
	s := f.open("Books")
	const n = 100
	for i := range uint64(n) {
		s.put("a", i, i+1, text(fmt.Sprint(i)))
	}
	s.wantPendingCount("a", n)
	s.clearAll(n)
	s.wantPendingCount("a", 0)
	s.wantRecord("a", n, text(fmt.Sprint(n-1)))
}

// manyMoreKeys: an index that is added over arrays of any length has a key for each element, however many a client may
// write at once.
func manyMoreKeys(f *fixture) {
	s := f.open("Books")
	const n = 2000
	d := &doc{}
	for i := range n {
		d.and("tag", fmt.Sprintf("t%04d", i))
	}
	s.put("a", 0, 1, d)
	s = f.open("Books", byTag)
	for revision := uint64(1); ; revision++ {
		for _, i := range []int{0, 256, 1000, n - 1} {
			s.wantMatches(driver.Query{Index: "tag", Equal: parts(fmt.Sprintf("t%04d", i))}, "a")
		}
		if revision == 3 {
			break
		}
		d.Text = fmt.Sprint("write ", revision)
		s.put("a", revision, revision+1, d)
	}
	s.put("a", 3, 4, keyed("tag", "t0001"))
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("t0001")}, "a")
	s.wantMatches(driver.Query{Index: "tag", Equal: parts("t1999")}, "")
}
