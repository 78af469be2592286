package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/test/kit"
)

// role, in the environment, makes this binary a package's tests that pass, fail or hang.
const role = "BELFRY_TEST_SUITE_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "passes":
		fmt.Println("PASS")
	case "fails":
		fmt.Println("--- FAIL: TestOfAPackage")
		os.Exit(1)
	case "breaks", "breaks once", "breaks after a failure", "races":
		breaks(os.Getenv(role))
	case "hangs":
		if err := os.WriteFile("begun", nil, 0o600); err != nil {
			panic(err)
		}
		<-time.After(time.Hour)
	default:
		m.Run()
	}
}

// breaks ends as the race detector does when it fails itself, or finds a race.
func breaks(how string) {
	runs, err := os.OpenFile("runs", os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		panic(err)
	}
	if _, err := runs.WriteString("x"); err != nil {
		panic(err)
	}
	all, err := os.ReadFile("runs")
	switch {
	case err != nil:
		panic(err)
	case how == "breaks once" && len(all) > 1:
		return
	case how == "breaks after a failure":
		fmt.Println("--- FAIL: TestOfAPackage")
	case how == "races":
		fmt.Println("WARNING: DATA RACE")
	}
	fmt.Println(`ThreadSanitizer: CHECK failed: tsan_rtl.cpp:346 "((exiting))" (0x0, 0x0) (tid=1)`)
	os.Exit(66)
}

// Tests are repeated, once, when the race detector itself failed, and for no other reason.
func TestTestsAreRepeatedWhenTheRaceDetectorFails(t *testing.T) {
	for does, want := range map[string]struct {
		runs  int
		fails bool
	}{"breaks once": {2, false}, "breaks": {2, true}, "breaks after a failure": {1, true}, "races": {1, true}} {
		t.Setenv(role, does)
		tested := built(t, "belfry/a")
		r := run(t.Context(), tested, time.Minute)
		runs, err := os.ReadFile(filepath.Join(tested.folder, "runs"))
		if err != nil || len(runs) != want.runs || (r.err != nil) != want.fails || r.repeated != (want.runs > 1) {
			t.Errorf("tests of which the detector %s: %d runs, %v, %+v", does, len(runs), err, r)
		}
	}
}

// built returns a package whose tests are a copy of this binary.
func built(t *testing.T, name string) *target {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "x.test")
	if err := os.Link(os.Args[0], binary); err != nil {
		data, err := os.ReadFile(os.Args[0])
		if err == nil {
			err = os.WriteFile(binary, data, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return &target{path: name, folder: t.TempDir(), binary: binary}
}

func TestAFailureIsShownAndFails(t *testing.T) {
	for _, c := range []struct {
		does string
		want []string
		fail bool
	}{
		{"passes", []string{"ok  \tbelfry/a\t", "ok  \tbelfry/b\t", "Ran the tests of 2 packages in "}, false},
		{"fails", []string{"--- FAIL: TestOfAPackage\nbelfry/a: exit status 1\nFAIL\tbelfry/a\t", "FAIL\tbelfry/b\t"},
			true},
	} {
		t.Setenv(role, c.does)
		var out strings.Builder
		all := []*target{built(t, "belfry/a"), built(t, "belfry/b")}
		err := runAll(t.Context(), &out, all, 2, time.Minute)
		if said := fmt.Sprint(err); (err != nil) != c.fail || strings.Contains(said, "belfry/a") != c.fail ||
			strings.Contains(said, "belfry/b") != c.fail {
			t.Errorf("tests that %s: %v", c.does, err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is missing in:\n%s", want, out.String())
			}
		}
		if strings.Contains(out.String(), "PASS") {
			t.Errorf("the output of tests that pass is printed:\n%s", out.String())
		}
	}
}

// Tests that don't end by themselves end with the stacks of all goroutines.
func TestAHangingTestIsEndedWithItsStack(t *testing.T) {
	t.Setenv(role, "hangs")
	ctx, cancel := context.WithCancel(t.Context())
	hung := make(chan result)
	target := built(t, "belfry/a")
	go func() { hung <- run(ctx, target, time.Minute) }()
	kit.WaitUntil(t, func() error {
		_, err := os.Stat(filepath.Join(target.folder, "begun"))
		return err
	})
	cancel()
	r := <-hung
	if r.err == nil || !strings.Contains(string(r.output), "belfry/test/suite.TestMain(") {
		t.Errorf("%v\n%s", r.err, r.output)
	}
}

func TestBatchesAreOfOneModuleAndHaveDistinctNames(t *testing.T) {
	var all []*target
	for _, name := range []string{"p/a", "p/b", "q/a", "q/c", "r/a", "r/b", "s/a", "s/d", "t/a"} {
		all = append(all, &target{path: name, plain: name > "s", module: "."})
	}
	all = append(all, &target{path: "u/e", module: "u"})
	var got []string
	for _, batch := range batches(all) {
		var names []string
		for _, t := range batch {
			names = append(names, t.path)
		}
		got = append(got, strings.Join(names, " "))
	}
	if want := []string{"p/a p/b q/c", "q/a r/b", "r/a", "s/a s/d", "t/a", "u/e"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTemporaryFilesAreInMemory(t *testing.T) {
	var out strings.Builder
	t.Setenv("TMPDIR", "/somewhere")
	remove, err := useMemory(&out)
	if err != nil || out.Len() > 0 || os.Getenv("TMPDIR") != "/somewhere" {
		t.Fatalf("%v, %s", err, out.String())
	}
	remove()

	t.Setenv("TMPDIR", "")
	within, free := inMemory()
	if remove, err = useMemory(&out); err != nil {
		t.Fatal(err)
	}
	folder := os.Getenv("TMPDIR")
	if (folder != "") != (free >= room) || filepath.Dir(folder) != within && folder != "" {
		t.Errorf("%q, with %d bytes free in %s", folder, free, within)
	}
	if folder != "" && !strings.Contains(out.String(), folder) {
		t.Errorf("%q says nothing of %s", out.String(), folder)
	}
	if folder != "" {
		if is, err := os.Stat(folder); err != nil || is.Mode().Perm() != 0o755 {
			t.Errorf("other users can't use %s: %v, %v", folder, is.Mode(), err)
		}
	}
	remove()
	if _, err := os.Stat(folder); folder != "" && !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", folder, err)
	}
}
