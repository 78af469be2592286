package backends

import (
	"fmt"
	"slices"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/account/admin"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/record"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// accounts is the accounts of a process.
type accounts struct {
	*testing.T
	*account.Service
	users *store.Store
}

func openAccounts(t *testing.T, b driver.Backend) *accounts {
	t.Helper()
	ofUser := func(source string) []store.Mapping {
		return []store.Mapping{{Source: source, Target: "Users", Key: "user", Cascade: true}}
	}
	open := func(o store.Options) *store.Store {
		s, err := store.Open(t.Context(), b, o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	o := account.Options{BaseURL: "http://localhost", Hash: passwords.HashParams{Memory: 8, Time: 1, Threads: 1}}
	o.Users = open(store.Options{Name: "Users", KeyIndexes: []store.KeyIndex{o.Finder.Index()}})
	o.Idents = open(store.Options{Name: "Idents", Maps: ofUser("Idents"),
		KeyIndexes: []store.KeyIndex{record.IdentIndex()}})
	o.Sessions = open(store.Options{Name: "Sessions", Maps: ofUser("Sessions"), KeyIndexes: record.SessionIndexes()})
	o.Tokens = open(store.Options{Name: "Tokens"})
	s := account.New(o)
	t.Cleanup(s.Close)
	return &accounts{t, s, o.Users}
}

// finds checks which users a query finds, in pages of three.
func (a *accounts) finds(query string, want ...string) {
	a.Helper()
	var got []string
	for after := ""; ; {
		page, next, err := a.Admin.Search(a.Context(), query, after, 3)
		if err != nil {
			a.Fatalf("%s: %v", query, err)
		}
		for _, one := range page {
			name, _ := object.Text(object.Field(one.User, "name"))
			got = append(got, name)
		}
		if after = next; after == "" {
			break
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		a.Errorf("%s: found %q, want %q", query, got, want)
	}
}

// Users are found, and API keys are listed, by indexes: in a process that did not write them, after changes.
func TestUsersAndAPIKeysAreFoundOnEachBackend(t *testing.T) {
	t.Parallel()
	for name, at := range places() {
		t.Run(name, func(t *testing.T) {
			open := at(t)
			backend, err := open()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = backend.Close() })
			first := openAccounts(t, backend)
			second := first
			if name != "files" { // which are one process's
				other, err := open()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = other.Close() })
				second = openAccounts(t, other)
			}
			uuids := map[string]string{}
			for i, name := range []string{"Ada Lovelace", "Alan Turing", "Grace Hopper", "Zoë Müller", "王小明", "Ada Byron"} {
				fields := object.Object{}
				fields.Set("name", name)
				user, err := first.Admin.CreateUser(t.Context(), admin.NewUser{Fields: fields,
					Login: fmt.Sprintf("p%d@example.com", i)})
				if err != nil {
					t.Fatal(err)
				}
				uuids[name] = user.UUID
				if _, _, err := first.Admin.IssueKey(t.Context(), user, keys.New{Name: name}); err != nil {
					t.Fatal(err)
				}
			}
			second.finds("ada", "Ada Lovelace", "Ada Byron")
			second.finds("ring", "Alan Turing")
			second.finds("muller", "Zoë Müller")
			second.finds("小", "王小明")
			second.finds("@example", "Ada Lovelace", "Alan Turing", "Grace Hopper", "Zoë Müller", "王小明", "Ada Byron")
			second.finds("hopper 2@", "Grace Hopper")

			renamed := object.Object{}
			renamed.Set("name", "Ada King")
			if _, err := second.users.Update(t.Context(), renamed,
				store.UpdateOptions{UUID: uuids["Ada Byron"]}); err != nil {
				t.Fatal(err)
			}
			if err := second.Admin.DeleteUser(t.Context(), uuids["Alan Turing"]); err != nil {
				t.Fatal(err)
			}
			first.finds("byron")
			first.finds("king", "Ada King")
			first.finds("turing")

			var names []string
			for after := []byte(nil); ; {
				page, next, err := second.Keys.All(t.Context(), keys.ByUse, after, 2)
				if err != nil {
					t.Fatal(err)
				}
				for _, key := range page {
					names = append(names, key.Name)
				}
				if after = next; after == nil {
					break
				}
			}
			if len(names) != 5 || slices.Contains(names, "Alan Turing") {
				t.Errorf("the API keys are %q", names)
			}
		})
	}
}
