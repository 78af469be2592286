package app

import (
	"strings"
	"testing"

	"belfry/pkg/app/plan"
)

// A store whose objects would stay when their owner deletes the account is named, with the shortest change by which they
// are deleted. Who says by onDelete what becomes of them is not asked.
func TestCheckNamesWhatStaysWithoutItsOwner(t *testing.T) {
	const head = `
authentication: {deletion: {enabled: true}}
stores:
  Users: {}
  Notes: {owner: user, policy: owner`
	for options, says := range map[string]string{
		"":                            "add references: {user: {store: Users, onDelete: cascade}} to delete them as well",
		", references: {user: Users}": "write onDelete: cascade in references.user to delete them as well",
		", references: {user: {store: Users, onDelete: keep}}":      "write onDelete: cascade in references.user",
		", map: {Users: {key: user, target: notes}}":                "write cascade: true in map.Users",
		", map: {Users: {key: other, target: notes}}":               "add references: {user: {store: Users, onDelete: cascade}}",
		", map: {Users: {key: user, target: notes, cascade: true}}": "",
		", references: {user: {store: Users, onDelete: cascade}}":   "",
		", references: {user: {store: Users, onDelete: restrict}}":  "",
	} {
		loaded := newPlace(t, "").load(head + options + "}\n")
		if err := plan.Check(loaded); err != nil {
			t.Errorf("%s: %v", options, err)
			continue
		}
		found := ""
		for _, w := range plan.Warnings(loaded) {
			if strings.Contains(w, "its objects stay") {
				found = w
			}
		}
		if (found == "") != (says == "") || !strings.Contains(found, says) {
			t.Errorf("%s: %q, want %q", options, found, says)
		}
		// What is proposed is valid, and enough.
		if add, ok := strings.CutPrefix(says, "add "); ok {
			proposed, _, _ := strings.Cut(add, " to delete")
			better := newPlace(t, "").load(head + options + ", " + proposed + "}\n")
			if err := plan.Check(better); err != nil || strings.Contains(strings.Join(plan.Warnings(better), "\n"), "stay when") {
				t.Errorf("%s: %v, %v", proposed, err, plan.Warnings(better))
			}
		}
	}
}
