package account_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// person creates a user with a name, and returns the uuid.
func (w *fixture) person(login, name string) string {
	w.Helper()
	fields := object.Object{}
	fields.Set("name", name)
	user, err := w.Admin.CreateUser(w.Context(), admin.NewUser{Login: login, Fields: fields})
	w.must(err)
	return user.UUID
}

// search returns the users that a query finds, in pages of some.
func (w *fixture) search(query string, limit int) (found []string) {
	w.Helper()
	for after := ""; ; {
		page, next, err := w.Admin.Search(w.Context(), query, after, limit)
		w.must(err)
		for _, a := range page {
			if slices.Contains(found, a.UUID) {
				w.Errorf("%q finds %s twice", query, a.UUID)
			}
			found = append(found, a.UUID)
		}
		if after = next; after == "" {
			return found
		}
	}
}

func TestUsersAreFoundByPartsOfNamesAndAddresses(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	people := map[string]string{
		"ada":   w.person("ada@example.com", "Ada Lovelace"),
		"alan":  w.person("turing@example.org", "Alan Turing"),
		"zoe":   w.person("z.muller@xn--mller-kva.example", "Zoë Müller"),
		"wang":  w.person("wxm@example.com", "王小明"),
		"grace": w.person("grace@navy.example", "Grace Hopper"),
	}
	w.linkProvider(people["grace"], "amazing", "gh@example.net")
	machine := object.Object{}
	machine.Set("name", "Nightly export")
	robot, err := w.Admin.CreateUser(t.Context(), admin.NewUser{Machine: true, Fields: machine})
	w.must(err)
	people["robot"] = robot.UUID
	for query, want := range map[string]string{
		"lace":            "ada",
		"ADA":             "ada",
		"velac":           "ada",
		"lovelace ada":    "ada",
		"lovelace turing": "",
		"turing":          "alan",
		"example.com":     "ada wang",
		"@example":        "ada alan wang grace",
		"muller":          "zoe",
		"müller.exam":     "zoe",
		"ZOE":             "zoe",
		"小":               "wang",
		"王小明":             "wang",
		"wxm 王":           "wang",
		"amazing":         "grace",
		"hopper navy":     "grace",
		"hopper ce":       "grace", // two characters narrow wherever they are
		"ce hopper":       "grace",
		"ho":              "grace", // and find where a part of a word begins
		"pp":              "",
		"gh@ex":           "grace",
		"nightly":         "robot",
		"nobody":          "",
		"example.com w":   "wang", // a word of one character only narrows
	} {
		for _, limit := range []int{1, 2, 50} {
			var names []string
			for _, uuid := range w.search(query, limit) {
				for name, of := range people {
					if of == uuid {
						names = append(names, name)
					}
				}
			}
			slices.Sort(names)
			wanted := strings.Fields(want)
			slices.Sort(wanted)
			if !slices.Equal(names, wanted) {
				t.Errorf("%q, %d a page: %v, want %v", query, limit, names, wanted)
			}
		}
	}
	for _, query := range []string{"", "x", "  ", "@ x"} {
		_, _, err := w.Admin.Search(t.Context(), query, "", 10)
		if w.wantKind(err, errs.Invalid); !errors.Is(err, admin.ErrTooShort) {
			t.Errorf("%q: %v", query, err)
		}
	}
	_, next, err := w.Admin.Search(t.Context(), "example", "", 1)
	w.must(err)
	for query, after := range map[string]string{"ada": "rubbish", "lovelace": next, strings.Repeat("x", 300): ""} {
		_, _, err := w.Admin.Search(t.Context(), query, after, 10)
		w.wantKind(err, errs.Invalid)
	}
}

// linkProvider adds a login of a provider to a user.
func (w *fixture) linkProvider(user, login, address string) {
	w.Helper()
	profile := object.Object{}
	profile.Set("login", login)
	profile.Set("email", address)
	w.link(user, record.Identity{ID: "42", Provider: "github", Profile: profile})
}

// link adds an identity to a user.
func (w *fixture) link(user string, id record.Identity) {
	w.Helper()
	ident := id.Ident()
	ident.User = user
	_, err := w.Admin.DB.Idents.Create(w.Context(), id.UUID(), ident)
	w.must(err)
}

func TestASearchForUsersFollowsTheirChanges(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	uuid := w.person("ada@example.com", "Ada Byron")
	if found := w.search("byron", 10); len(found) != 1 {
		t.Fatal(found)
	}
	renamed := object.Object{}
	renamed.Set("name", "Ada Lovelace")
	_, err := w.set.Store("Users").Update(t.Context(), renamed, store.UpdateOptions{UUID: uuid})
	w.must(err)
	if found := w.search("byron", 10); len(found) != 0 {
		t.Errorf("found by a former name: %v", found)
	}
	if found := w.search("lovel", 10); !slices.Equal(found, []string{uuid}) {
		t.Errorf("not found by the new name: %v", found)
	}
	// The cascade deletes the ident later: it finds nobody.
	w.must(w.Admin.DeleteUser(t.Context(), uuid))
	for _, query := range []string{"lovel", "ada@ex"} {
		if found := w.search(query, 10); len(found) != 0 {
			t.Errorf("a deleted user is found by %s: %v", query, found)
		}
	}
}

func TestPagesOfASearchHaveEachUserOnce(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	want := map[string]bool{}
	for i := range 130 {
		uuid := w.person(fmt.Sprintf("smith%03d@example.com", i), fmt.Sprintf("Smith the %dth", i))
		if i%3 == 0 {
			w.link(uuid, record.AddressIdentity(fmt.Sprintf("also-smith%d@example.org", i)))
		}
		want[uuid] = true
	}
	for i := range 20 {
		machine := object.Object{}
		machine.Set("name", fmt.Sprintf("Blacksmith %d", i))
		robot, err := w.Admin.CreateUser(t.Context(), admin.NewUser{Machine: true, Fields: machine})
		w.must(err)
		want[robot.UUID] = true
	}
	for _, limit := range []int{7, 50, 200} {
		found := w.search("smith", limit)
		for _, uuid := range found {
			if !want[uuid] {
				t.Errorf("found %s", uuid)
			}
		}
		if len(found) != len(want) {
			t.Errorf("%d a page: found %d, want %d", limit, len(found), len(want))
		}
	}
}
