package weak

import (
	"bytes"
	"testing"

	"github.com/bits-and-blooms/bloom/v3"
)

func TestTheEmbeddedFilterHasAHundredThousandPasswords(t *testing.T) {
	if n := loadCommon().ApproximatedSize(); n < 99_000 || n > 101_000 {
		t.Errorf("about %d", n)
	}
	if len(commonFilter) > 360_000 {
		t.Errorf("%d bytes", len(commonFilter))
	}
}

func BenchmarkLoadingTheFilter(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var f bloom.BloomFilter
		if _, err := f.ReadFrom(bytes.NewReader(commonFilter)); err != nil {
			b.Fatal(err)
		}
	}
}
