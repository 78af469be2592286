package upgrade

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/test/kit"
	"belfry/test/kit/programs"
	"belfry/test/process"
)

// TestSoakGoingBack goes back as docs/guides/upgrade.md says, and on again: the claims of unique values are those of
// both versions, and those of neither after one of them had a configuration without them.
func TestSoakGoingBack(t *testing.T) {
	if !kit.SoakRequested() {
		return // it needs the history of the project, and builds the release
	}
	release, err := programs.Release(Release)
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	plain := configure(t, data)
	text, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	unique := filepath.Join(t.TempDir(), "unique.yaml")
	if err := os.WriteFile(unique,
		[]byte(strings.Replace(string(text), "    indexes: [year]\n", "    indexes: [year]\n    unique: [title]\n", 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	serve := func(program, config string, use func(v *visitor)) {
		t.Helper()
		server, err := process.Start(program, nil, "--config", config)
		if err != nil {
			t.Fatal(err)
		}
		defer server.Kill()
		use(&visitor{T: t, server: server})
		if err := server.Stop(); err != nil {
			t.Fatalf("%v\n%s", err, server.Log())
		}
	}
	create := func(v *visitor, uuid, title string) int {
		t.Helper()
		res, err := http.Post(v.server.URL+"/books", "application/json",
			strings.NewReader(fmt.Sprintf(`{"uuid":%q,"title":%q}`, uuid, title)))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	own := process.Commands(t)
	serve(own, unique, func(v *visitor) {
		if first, second := create(v, "a", "Emma"), create(v, "b", "Emma"); first != http.StatusCreated ||
			second != http.StatusConflict {
			t.Errorf("two books with one title: %d and %d", first, second)
		}
	})
	serve(release, unique, func(v *visitor) {
		kit.WaitFor(t, "the values are known",
			func() bool { return create(v, "g", "Lady Susan") != http.StatusServiceUnavailable })
		if status := create(v, "b", "Emma"); status != http.StatusConflict {
			t.Errorf("the release takes a title that a book has: %d", status)
		}
	})
	serve(release, plain, func(v *visitor) {
		if status := create(v, "c", "Persuasion"); status != http.StatusCreated {
			t.Errorf("the release refuses a book: %d", status)
		}
		if got := v.get("/books/a").Body; !strings.Contains(got, "Emma") {
			t.Errorf("the release has the book %q", got)
		}
	})
	serve(own, unique, func(v *visitor) {
		kit.WaitFor(t, "the values are known",
			func() bool { return create(v, "d", "Sanditon") != http.StatusServiceUnavailable })
		if of, ofRelease := create(v, "e", "Emma"), create(v, "f", "Persuasion"); of != http.StatusConflict ||
			ofRelease != http.StatusConflict {
			t.Errorf("books with the titles of others, one of which the release wrote: %d and %d", of, ofRelease)
		}
	})
	if out, failure, exit, err := process.Run(own, "verify", "--config", unique); err != nil || exit != 0 {
		t.Errorf("verify: exit %d, %v\n%s%s", exit, err, out, failure)
	}
}
