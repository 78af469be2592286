package gotest

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	got := parse("ok  \tbelfry/pkg/errs\t0.003s\n"+
		"FuzzParse\nFuzzMergePatch\nok  \tbelfry/pkg/object\t0.004s\n"+
		"?   \tbelfry/bench/load\t[no test files]\n"+
		"FuzzDecode\nok  \tbelfry/pkg/event\t(cached)\n", "Fuzz", ".")
	want := []Target{{"belfry/pkg/object", "FuzzParse", "."}, {"belfry/pkg/object", "FuzzMergePatch", "."},
		{"belfry/pkg/event", "FuzzDecode", "."}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestChoose(t *testing.T) {
	all := []Target{{"p", "FuzzParse", "."}, {"q", "FuzzUUID", "."}}
	if got, err := choose(all, ""); err != nil || !slices.Equal(got, all) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := choose(all, "UUID"); err != nil || !slices.Equal(got, all[1:]) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := choose(all, "None"); err == nil {
		t.Errorf("no error, but %v", got)
	}
}
