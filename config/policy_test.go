package config

import (
	"slices"
	"strings"
	"testing"
)

// What a policy does not name is denied, but for a list, which is what get allows.
func TestPoliciesDenyWhatTheyDoNotName(t *testing.T) {
	const no = LeftOut
	owner := Policy{Owner: true}
	for text, want := range map[string]Policy{
		"{}":                                                  {},
		"{expose: {list: true}}":                              {},
		"{policy: owner}":                                     owner,
		"{owner: by}":                                         owner,
		"{owner: by, policy: owner}":                          owner,
		"{owner: by, policy: {get: isOwner}}":                 {Create: no, Get: "isOwner", Update: no, Delete: no},
		"{owner: by, policy: {default: deny}}":                {Create: no, Get: no, Update: no, Delete: no},
		"{owner: by, policy: {default: allow}}":               {},
		"{policy: {create: a}}":                               {Create: "a", Get: no, Update: no, Delete: no},
		"{policy: {get: a}}":                                  {Create: no, Get: "a", Update: no, Delete: no},
		"{policy: {update: a}}":                               {Create: no, Get: no, Update: "a", Delete: no},
		"{policy: {delete: a}}":                               {Create: no, Get: no, Update: no, Delete: "a"},
		"{policy: {list: a}}":                                 {Create: no, Get: no, Update: no, Delete: no, List: "a"},
		"{policy: {create: a, get: b, delete: c}}":            {Create: "a", Get: "b", Update: no, Delete: "c"},
		"{policy: {create: a, get: b, update: c, delete: d}}": {Create: "a", Get: "b", Update: "c", Delete: "d"},
		"{policy: {create: a, get: b, update: c, delete: d, list: e}}": {Create: "a", Get: "b", Update: "c",
			Delete: "d", List: "e"},
		"{policy: {default: deny}}": {Create: no, Get: no, Update: no,
			Delete: no},
		"{policy: {default: deny, get: a}}": {Create: no, Get: "a", Update: no,
			Delete: no},
		"{policy: {default: allow}}":                                      {},
		"{policy: {default: allow, get: a, list: b}}":                     {Get: "a", List: "b"},
		"{policy: {default: allow, create: a, update: b, delete: \"c\"}}": {Create: "a", Update: "b", Delete: "c"},
	} {
		c := mustParse(t, "stores: {Notes: "+text+"}\n")
		equal(t, text, c.Stores["Notes"].Policy, want)
		var out []string
		for name, rule := range map[string]string{"create": want.Create, "get": want.Get, "update": want.Update,
			"delete": want.Delete} {
			if rule == no {
				out = append(out, name)
			}
		}
		got := c.Stores["Notes"].Policy.LeftOut()
		slices.Sort(got)
		slices.Sort(out)
		if !slices.Equal(got, out) {
			t.Errorf("%s leaves out %q, want %q", text, got, out)
		}
		equal(t, text+" by default for owners", c.Stores["Notes"].OwnersByDefault, strings.Contains(text, "owner: by}"))
	}
}

// The stores of users and idents have their policies where they have none, and are as strict where they have one.
func TestPoliciesOfUsersAndIdents(t *testing.T) {
	for text, want := range map[string][2]Policy{
		"stores: {}": {{Owner: true, Create: "false"},
			{Owner: true, Create: "false", Update: "false", Delete: "false"}},
		"stores: {Users: {policy: owner}, Idents: {policy: owner, owner: user}}": {{Owner: true},
			{Owner: true, Create: "false", Update: "false", Delete: "false"}},
		"stores: {Users: {policy: {get: a}}, Idents: {policy: " +
			"{get: b}}}": {{Create: LeftOut, Get: "a", Update: LeftOut, Delete: LeftOut},
			{Create: LeftOut, Get: "b", Update: LeftOut, Delete: LeftOut}},
	} {
		c := mustParse(t, text+"\n")
		equal(t, text, [2]Policy{c.Stores["Users"].Policy, c.Stores["Idents"].Policy}, want)
		if c.Stores["Users"].OwnersByDefault || c.Stores["Idents"].OwnersByDefault {
			t.Errorf("%s: users or idents are for their owners since this release", text)
		}
	}
}

func TestTheDefaultOfAPolicyIsAWord(t *testing.T) {
	_, err := Parse("belfry.yaml", []byte("stores: {A: {policy: {default: 'true'}}}\n"), environment)
	if want := `1:23: stores.A.policy.default: expected deny or allow, not "true"`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %s", err, want)
	}
}
