package main

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	got := parse("ok  \tbelfry/pkg/errs\t0.003s\n" +
		"FuzzParse\nFuzzMergePatch\nok  \tbelfry/pkg/object\t0.004s\n" +
		"?   \tbelfry/test/load\t[no test files]\n" +
		"FuzzDecode\nok  \tbelfry/pkg/event\t(cached)\n")
	want := []target{{"belfry/pkg/store/object", "FuzzParse"}, {"belfry/pkg/store/object", "FuzzMergePatch"}, {"belfry/pkg/event", "FuzzDecode"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestChoose(t *testing.T) {
	all := []target{{"p", "FuzzParse"}, {"q", "FuzzUUID"}}
	if got, err := choose(all, ""); err != nil || !slices.Equal(got, all) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := choose(all, "UUID"); err != nil || !slices.Equal(got, all[1:]) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := choose(all, "None"); err == nil {
		t.Errorf("to run nothing is no success: %v", got)
	}
}
