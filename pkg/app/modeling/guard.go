package modeling

import (
	"slices"
	"strings"

	"belfry/config"
	"belfry/config/edit"
	"belfry/pkg/api/console"
	"belfry/pkg/errs"
)

// editable are the sections that admins change. The others decide where belfry listens, whom it trusts, and where its
// data is, so only who may write the file changes them.
var editable = [][]string{{"stores"}, {"authentication", "providers"}, {"mailers"}, {"limits"},
	{"binaries", anyName, "map"}}

// anyName is each name of a section: a service keeps its files where they are.
const anyName = "*"

// Editable returns the sections that admins change, as keys.
func Editable() (all []string) {
	for _, keys := range editable {
		all = append(all, edit.Key(keys))
	}
	return all
}

// admit refuses a change of a key that admins do not change.
func (c *current) admit(keys []string) error {
	for _, name := range keys {
		if name == "" {
			return errs.New(errs.Invalid, "%s: a key has no name", edit.Key(keys))
		}
	}
	within := func(section []string) bool {
		return len(keys) >= len(section) && slices.EqualFunc(keys[:len(section)], section,
			func(key, of string) bool { return key == of || of == anyName })
	}
	at := slices.IndexFunc(editable, within)
	switch {
	case at < 0:
		return errs.New(errs.Denied,
			"%s is not changed in the console, only in the file; it changes %s", edit.Key(keys),
			strings.Join(Editable(), ", "))
	case len(keys) == len(editable[at]) && keys[0] != "limits":
		return errs.New(errs.Invalid, "%s: change its entries one by one", edit.Key(keys))
	case keys[0] == "binaries" && c.parsed.Binaries[keys[1]] == nil:
		return errs.New(errs.Denied, "there is no service %s of files: add it in the file", keys[1])
	}
	switch store := storeOf(keys); {
	case config.Internal(store):
		return errs.New(errs.Denied, "%s is a store of belfry's own", store)
	case store == c.parsed.Authentication.IdentStore:
		return errs.New(errs.Denied, "%s has the logins of all users: its rules are changed only in the file", store)
	}
	return nil
}

// storeOf returns the store that an editable key is about; "" for none.
func storeOf(keys []string) string {
	switch keys[0] {
	case "stores":
		return keys[1]
	case "binaries":
		return keys[3]
	default:
		return ""
	}
}

// checkPaths refuses a configuration that names a file or folder that the one before does not, other than those that
// belfry writes for the change: a value that an admin types could name any file that this process can read.
func checkPaths(before, now *config.Config, own []string) error {
	known := map[string]bool{}
	for _, p := range before.Paths() {
		known[p.Name] = true
	}
	for _, p := range now.Paths() {
		initial := p.Use == config.WrittenFolder && !now.IsSet(p.Key)
		if p.Key == "" || known[p.Name] || slices.Contains(own, p.Name) || initial {
			continue
		}
		return errs.New(errs.Denied,
			"%s names a file or a folder, which is changed only in the file of the configuration",
			p.Key)
	}
	return nil
}

// checkRemoval refuses to remove a store, or a property of a schema, whose name the admin has not repeated.
func (c *current) checkRemoval(d *console.ModelDraft, changes []edit.Change, removed []string) error {
	for _, change := range changes {
		if len(change.Path) == 2 && change.Path[0] == "stores" && change.Value == nil {
			removed = append(removed, change.Path[1])
		}
	}
	for _, name := range removed {
		if name != d.Confirmed {
			return &errs.Error{Kind: errs.Invalid, Message: "confirm the removal: type the name of what is removed",
				Fields: []errs.Field{{Pointer: "/confirmed", Message: "expected " + name}}}
		}
	}
	return nil
}
