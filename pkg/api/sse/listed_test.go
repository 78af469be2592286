package sse_test

import (
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/api/sse"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

// A stream shows which objects there are, as a list does, and not as a get of a known
// uuid.
func TestEventsAreForThoseWhoMayListUnlessConfigured(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rules   policy.Rules
		getOnly bool
		want    map[string]string // by user: the uuids received
	}{
		"nobody may list": {policy.Rules{List: "false"}, false, map[string]string{"": "", "ada": ""}},
		"users may list": {policy.Rules{List: "user != null"}, false,
			map[string]string{"": "", "ada": "a b"}},
		"some objects are listed": {policy.Rules{List: "object.listed == true"}, false,
			map[string]string{"": "b", "ada": "b"}},
		"lists have a wider rule": {policy.Rules{Get: "object.listed == true", List: "true"}, false,
			map[string]string{"": "b"}},
		"by get alone": {policy.Rules{List: "false"}, true,
			map[string]string{"": "a b", "ada": "a b"}},
		"by get alone, which has rules": {policy.Rules{Get: "user != null", List: "false"}, true,
			map[string]string{"": "", "ada": "a b"}},
		"no rule for lists": {policy.Rules{Get: "user != null"}, false, map[string]string{"": "", "ada": "a b"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.open("Books", nil)
			w.open("Notes", &c.rules)
			w.start(func(o *sse.Options) {
				if c.getOnly {
					o.GetOnly = []string{"Notes"}
				}
			})
			clients := map[string]*testClient{}
			for who := range c.want {
				viewer := anonymous()
				if who != "" {
					viewer = user(who)
				}
				clients[who] = w.listen(sse.Subscription{}, viewer)
			}
			w.save("Notes", "a", `{"listed":false}`)
			w.save("Notes", "b", `{"listed":true}`)
			w.save("Books", "end", `{}`)
			for who, e := range clients {
				var got []string
				kit.WaitFor(t, "the last event arrives", func() bool {
					got = nil
					for _, m := range e.received() {
						got = append(got, fmt.Sprint(m.data["uuid"]))
					}
					return len(got) > 0 && got[len(got)-1] == "end"
				})
				if all := strings.TrimSpace(strings.TrimSuffix(strings.Join(got, " "), "end")); all != c.want[who] {
					t.Errorf("%q receives %q, want %q", who, all, c.want[who])
				}
			}
		})
	}
}
