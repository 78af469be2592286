package memory

import (
	"math"
	"testing"
)

func TestABudgetFollowsFromTheMemory(t *testing.T) {
	for _, c := range []struct {
		process    uint64 // MiB
		processors int
		chosen     bool
		want       [8]int64 // MiB: heap, most, cache, most of it, memtable, hashes, uploads, pictures
	}{
		{64, 2, false, [8]int64{38, 48, 8, 8, 1, 1, 19, 16}},
		{128, 2, false, [8]int64{76, 96, 10, 16, 3, 1, 38, 19}},
		{256, 2, false, [8]int64{153, 192, 21, 32, 7, 2, 76, 38}},
		{512, 2, false, [8]int64{176, 384, 25, 64, 8, 2, 153, 76}},
		{24 << 10, 2, false, [8]int64{176, 18432, 25, 1024, 8, 2, 256, 192}},
		{24 << 10, 16, false, [8]int64{624, 18432, 89, 1024, 16, 16, 256, 192}},
		{256, 2, true, [8]int64{256, 256, 36, 36, 12, 2, 128, 64}},
		{2048, 2, true, [8]int64{2048, 2048, 292, 292, 16, 2, 256, 192}},
	} {
		b := Divide(c.process*mib, c.processors, c.chosen)
		got := [8]int64{int64(b.Heap / mib), int64(b.Most / mib), b.Cache / mib, b.CacheMost / mib, b.MemTable / mib,
			int64(b.Hashes), b.Uploads / mib, b.Pictures / mib}
		if got != c.want {
			t.Errorf("%d MiB, %d processors, chosen %t: %v, want %v", c.process, c.processors, c.chosen, got, c.want)
		}
	}
	if b := Divide(math.MaxUint64, 2, true); b.Heap == 0 || int64(b.Heap) < 0 {
		t.Errorf("without a limit: a heap of %d bytes", b.Heap)
	}
}

// What a budget gives away at once is less than the process may use, however little that is.
func TestTheBoundedPartsFitTogether(t *testing.T) {
	for process := uint64(96); process < 1<<20; process += process / 8 {
		b := Divide(process*mib, 2, false)
		if sum := b.Cache + 2*b.MemTable + int64(b.Hashes*hashBytes) + int64(b.Lists); sum > int64(process*mib)*3/4 {
			t.Errorf("of %d MiB the parts take %d", process, sum/mib)
		}
	}
}

func TestThisProcessHasABudget(t *testing.T) {
	if b := Of(); b.Process < 64*mib || b.Process >= math.MaxInt64 || b.Heap == 0 {
		t.Errorf("%+v", b)
	}
}
