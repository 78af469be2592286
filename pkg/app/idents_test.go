package app

import (
	"strings"
	"testing"

	"belfry/pkg/app/plan"
)

// Rules by which anybody can write idents are named by config check, and at the start.
func TestRulesByWhichAnybodyWritesIdentsAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"expose: {}":                "",
		"expose: {}, policy: owner": "",
		"expose: {}, policy: {get: isOwner, create: 'user != null && user.admin == true'}": "",
		"policy: {create: 'true'}": "", // there is no route
		"expose: {restrict: {create: true}}, policy: {create: 'true', get: 'true'}": "",
		"expose: {}, policy: {create: 'true'}":                                      "everyone may create idents",
		"expose: {}, policy: {create: user != null}":                                "any user may create idents",
		"expose: {}, policy: {create: isOwner}":                                     "any user may create idents",
		"expose: {}, policy: {update: 'true', delete: 'true'}":                      "everyone may delete idents",
		"expose: {}, policy: {default: allow}":                                      "everyone may update idents",
	} {
		c := newPlace(t, "").load("stores: {Idents: {" + text + "}}\n")
		var found []string
		for _, w := range plan.Warnings(c) {
			if strings.Contains(w, "idents") {
				found = append(found, w)
			}
		}
		if all := strings.Join(found, "\n"); (want == "") != (all == "") || !strings.Contains(all, want) {
			t.Errorf("%s: %q, want %q", text, all, want)
		}
	}
}

func TestAMailProviderWithoutAMailerIsWarnedOf(t *testing.T) {
	const email = "authentication: {providers: {email: {}}}\n"
	for text, want := range map[string]bool{
		"": false, email: true, email + "mailers: {default: {type: file}}\n": false,
		email + "mailers: {other: {type: file}}\n":                           true,
		email + "mailers: {default: {type: smtp, host: smtp.example.com}}\n": false,
	} {
		if all := strings.Join(plan.Warnings(newPlace(t, "").load(text)), "\n"); strings.Contains(all,
			"no mailer is configured") != want {
			t.Errorf("%s: %q", text, all)
		}
	}
}
