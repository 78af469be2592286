package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/store"
)

// defaults are a mapping's.
var defaults = store.Mapping{Key: "parent", Fields: []string{"title", "year"}, Limit: 10_000, MaxBytes: 1 << 20,
	MaxEntry: 64 << 10}

func TestArraysAreFull(t *testing.T) {
	for _, a := range []*arrayed{
		{run: "a", parents: 3, entries: fullEntries, bytes: smallEntry},
		{run: "b", parents: 1000, entries: largeFull, bytes: largeEntry},
	} {
		if defaults.Full(a.entries-1, (a.entries-1)*a.bytes) || !defaults.Full(a.entries, a.entries*a.bytes) {
			t.Errorf("an array of %d entries of %d bytes is not just full", a.entries, a.bytes)
		}
		for i := range a.children() {
			if i > a.entries+2 && i < a.children()-2 {
				continue
			}
			body := a.create(i)
			if entry := defaults.Entry(a.child(i/a.entries, i%a.entries), body,
				store.Target{UUID: a.parent(i / a.entries)}); len(entry)+1 != a.bytes {
				t.Fatalf("the entry of child %d has %d bytes with its comma, want %d: %s", i, len(entry)+1, a.bytes,
					entry)
			}
			if again := a.create(i); string(again) != string(body) {
				t.Fatalf("child %d is %s, and then %s", i, body, again)
			}
		}
	}
}

// In each pass every child is updated once, to another year of as many digits; updates that follow each other are of
// other parents.
func TestUpdatesAreSpread(t *testing.T) {
	a := &arrayed{run: "a", parents: 3, entries: 4}
	years := map[string]int{}
	for i := range a.children() {
		years["/children/"+a.child(i/a.entries, i%a.entries)] = firstYear
	}
	for pass := range 3 {
		seen := map[string]bool{}
		for i := range a.children() {
			path, body := a.update(pass*a.children() + i)
			var changed struct{ Year int }
			if err := json.Unmarshal(body, &changed); err != nil {
				t.Fatal(err)
			}
			before, known := years[path]
			if !known || seen[path] || changed.Year == before ||
				len(fmt.Sprint(changed.Year)) != len(fmt.Sprint(firstYear)) {
				t.Errorf("update %d of pass %d: %s %s, and it was %d", i, pass, path, body, before)
			}
			if parent := fmt.Sprintf("ca-%05d-", i%a.parents); !strings.Contains(path, parent) {
				t.Errorf("update %d is of %s, want a child of %s", i, path, parent)
			}
			years[path], seen[path] = changed.Year, true
		}
	}
}

func TestCostOfUpdatesIsWhatHappenedBetweenTwoMoments(t *testing.T) {
	start := time.Unix(1_900_000_000, 0)
	began := arrayMoment{at: start, cpu: time.Second, published: 1000, written: 5000, log: 100}
	ended := arrayMoment{at: start.Add(2 * time.Second), cpu: 3 * time.Second, published: 1220, written: 45_000,
		log: 10_100}
	c := costOf(200, began, ended)
	if want := (arrayCost{updates: 200, took: 2 * time.Second, cpu: 2 * time.Second, writes: 20, written: 40_000,
		log: 10_000}); c != want {
		t.Errorf("%+v, want %+v", c, want)
	}
	if c.rate() != 100 || c.batch() != 10 || c.records(1000) != 100 || c.disk() != 200 {
		t.Errorf("rate %v, batch %v, records %v, disk %v", c.rate(), c.batch(), c.records(1000), c.disk())
	}
}

func TestATurnIsLongEnough(t *testing.T) {
	var tried []int
	cost, err := enoughUpdates(100, func(n int) (arrayCost, error) {
		tried = append(tried, n)
		took := map[int]time.Duration{100: time.Second, 500: time.Second, 2500: 2 * time.Second}[n]
		return arrayCost{updates: n, took: max(took, time.Duration(n)*time.Millisecond/2)}, nil
	})
	if want := []int{100, 500, 2500, 6250}; err != nil || cost.updates != 6250 || !slices.Equal(tried, want) {
		t.Errorf("%+v, %v after %v, want %v", cost, err, tried, want)
	}
	if _, err := enoughUpdates(100, func(int) (arrayCost, error) { return arrayCost{}, errStatus }); !errors.Is(err,
		errStatus) {
		t.Errorf("%v", err)
	}
}

func TestWhatTheKernelSaysOfAProcess(t *testing.T) {
	const text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: " +
		"8192\ncancelled_write_bytes: 4096\n"
	if bytes, ok := parseWritten(text); !ok || bytes != 4096 {
		t.Errorf("%d, %t", bytes, ok)
	}
	for _, text := range []string{"", "write_bytes: x\ncancelled_write_bytes: 1\n", "cancelled_write_bytes: 1\n"} {
		if _, ok := parseWritten(text); ok {
			t.Errorf("%q is taken for the bytes of a process", text)
		}
	}
}

func TestMetricWithoutLabels(t *testing.T) {
	page := []byte("# HELP a_total x\na_total_more 1\na_total{b=\"c\"} 2\na_total 3e+06\n")
	if got := metric(page, "a_total"); got != 3e6 {
		t.Errorf("%v", got)
	}
	if got := metric(page, "b"); got != 0 {
		t.Errorf("%v for one that there is not", got)
	}
}
