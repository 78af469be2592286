package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/app/command"
	"belfry/pkg/app/plan"
)

const uniqueSlugs = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Books: {expose: {}, unique: [slug]}
`

// taken checks that a value is another object's, and that one which is nobody's can be given.
func (p *place) taken(a *App, value, free string) {
	p.Helper()
	if status, text := p.do(a, "POST", "/books", fmt.Sprintf(`{"slug":%q}`, value)); status != http.StatusConflict ||
		!strings.Contains(text, "problem:taken") {
		p.Errorf("%s: %d %s", value, status, text)
	}
	p.want(a, "POST", "/books", fmt.Sprintf(`{"slug":%q}`, free), http.StatusCreated)
}

// Until the values of a store are collected, two objects can get one. Users may not: rules compare their properties.
func TestStoresOfAccountsGiveNoValueBeforeAllAreKnown(t *testing.T) {
	const text = "authentication: {userStore: People, identStore: Logins}\nstores: {Books: {unique: [slug]}, People: " +
		"{unique: [name]}}\n"
	p, err := plan.Compile(newPlace(t, "").load(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range p.Stores {
		if account := o.Name == "People" || o.Name == "Logins"; o.CompleteClaims != account {
			t.Errorf("%s: %v", o.Name, o.CompleteClaims)
		}
	}
}

// The values are those of the backup, at once, however often it is restored.
func TestUniqueValuesAreThoseOfTheBackup(t *testing.T) {
	p := newPlace(t, uniqueSlugs)
	a := p.start()
	p.want(a, "POST", "/books", `{"uuid":"a","slug":"x"}`, http.StatusCreated)
	p.backup()
	p.want(a, "PUT", "/books/a", `{"slug":"later"}`, http.StatusOK)
	p.stop(a)
	for range 2 {
		again := p.fresh(uniqueSlugs)
		if u := again.restore(p).Report.Unique; u == nil || u.Objects != 1 || u.Claims != 1 {
			t.Errorf("%+v", u)
		}
		a = again.start()
		again.taken(a, "x", "later")
		again.stop(a)
	}
}

// An import refuses objects whose values others have, of the store or of the file, and leaves those that exist as they
// are, whatever values they have now.
func TestAnImportRefusesValuesThatOthersHave(t *testing.T) {
	p := newPlace(t, uniqueSlugs)
	a := p.start()
	p.want(a, "POST", "/books", `{"uuid":"a","slug":"x"}`, http.StatusCreated)
	p.want(a, "PUT", "/books/a", `{"slug":"y"}`, http.StatusOK)
	p.want(a, "POST", "/books", `{"uuid":"b","slug":"x"}`, http.StatusCreated)
	const file = `{"uuid":"a","slug":"x"}
{"uuid":"c","slug":"x"}
{"uuid":"d%[1]s","slug":"d%[1]s"}
{"uuid":"e","slug":"d%[1]s"}
`
	imports := func(n string) {
		t.Helper()
		r, err := command.Import.Do(t.Context(), p.config,
			command.ImportRequest{Store: "Books", From: strings.NewReader(fmt.Sprintf(file, n))})
		if err != nil || r.Created != 1 || r.Existing != 1 || len(r.Rejected) != 2 {
			t.Fatalf("%+v, %v", r, err)
		}
		for i, line := range []string{"line 2: ", "line 4: "} {
			if !strings.HasPrefix(r.Rejected[i], line) ||
				!strings.Contains(r.Rejected[i], "another object of Books has the same slug") {
				t.Errorf("rejected: %s", r.Rejected[i])
			}
		}
	}
	imports("1")
	p.stop(a)
	imports("2") // by the command alone
	a = p.start()
	p.taken(a, "d2", "free")
}
