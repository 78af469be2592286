package seal_test

import (
	"errors"
	"testing"
	"time"

	"belfry/internal/seal"
	"belfry/pkg/errs"
)

// Two processes, one of which has read of a new key later than the other, open what
// either seals, at any time until the old key ends.
func TestTextsAreOpenedWhileTheKeyChanges(t *testing.T) {
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	old, next := seal.Key{Secret: seal.NewKey()}, seal.Key{Secret: seal.NewKey(), From: begin.Add(time.Minute)}
	now := begin
	clock := func() time.Time { return now }
	sealer := func(keys ...seal.Key) *seal.Sealer {
		s, err := seal.NewWithKeys(keys, clock)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := sealer(old)
	ended := old
	ended.Until = begin.Add(time.Hour)
	changed, alone := sealer(ended, next), sealer(next)
	opens := func(s *seal.Sealer, text string) bool {
		content, ok := s.Open("test", text)
		if ok && string(content) != "content" {
			t.Errorf("opened %q", content)
		}
		return ok
	}
	for at, c := range map[time.Duration]struct{ withNext, opensOld bool }{
		0: {false, true}, 59 * time.Second: {false, true}, time.Minute: {true, true}, time.Hour - 1: {true, true},
		time.Hour: {true, false},
	} {
		now = begin.Add(at)
		text := changed.Seal("test", []byte("content"))
		if !opens(changed, text) {
			t.Errorf("after %s: its own text is not opened", at)
		}
		if got := opens(alone, text); got != c.withNext {
			t.Errorf("after %s: sealed with the next key: %v", at, got)
		}
		if !c.withNext && !opens(before, text) {
			t.Errorf("after %s: a process without the next key can't open a text", at)
		}
		if got := opens(changed, before.Seal("test", []byte("content"))); got != c.opensOld {
			t.Errorf("after %s: a text of the old key is opened: %v", at, got)
		}
		if !opens(changed, alone.Seal("test", []byte("content"))) {
			t.Errorf("after %s: a text of the next key is not opened", at)
		}
	}
}

func TestKeysThatCannotWorkLeaveThoseBefore(t *testing.T) {
	s := newSealer(t, seal.NewKey())
	text := s.Seal("test", nil)
	for _, keys := range [][]seal.Key{nil, {{}}, {{Secret: seal.NewKey()}, {Secret: []byte("short")}}} {
		if err := s.SetKeys(keys); !errors.Is(err, errs.Internal) {
			t.Errorf("%d keys: %v", len(keys), err)
		}
	}
	if _, ok := s.Open("test", text); !ok {
		t.Error("the key is gone")
	}
}

// What is stored is sealed again while its key still opens it.
func TestATextOfAnEarlierKeyIsNotCurrent(t *testing.T) {
	old, next := seal.Key{Secret: seal.NewKey()}, seal.Key{Secret: seal.NewKey()}
	changed, err := seal.NewWithKeys([]seal.Key{old, next}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	text := newSealer(t, old.Secret).Seal("test", []byte("content"))
	if _, ok := changed.Open("test", text); !ok || changed.Current("test", text) {
		t.Errorf("opened %v, current %v", ok, changed.Current("test", text))
	}
	text = changed.Seal("test", []byte("content"))
	if !changed.Current("test", text) || changed.Current("other", text) || changed.Current("test", "") ||
		changed.Current("test", text+"\n") {
		t.Error("the key of a text is not recognized")
	}
}
