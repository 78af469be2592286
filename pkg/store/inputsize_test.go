package store_test

import (
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// What is far too large is refused before a patch is merged and rules are evaluated on it: anybody may send it. What is
// somewhat too large may be a patch that removes fields.
func TestWhatIsFarTooLargeIsRefusedBeforeItsRules(t *testing.T) {
	const most = 1000
	s, _ := open(t, store.Options{
		MaxSize: most, ClientUUIDs: true, Maps: nil, Arrays: []string{"copies"},
		Policy: compile(t, policy.Rules{Create: "false", Get: "true", Update: "false"}),
	})
	save(t, s, "x", `{"a":{"b":1}}`)
	ctx := as(t.Context(), "ada")
	for _, c := range []struct {
		bytes int
		want  errs.Kind
	}{{most / 2, errs.Denied}, {most * 3 / 2, errs.Denied}, {most * 3, errs.TooLarge}} {
		fields := fmt.Sprintf(`{"a":{"b":%q}}`, strings.Repeat("a", c.bytes))
		_, err := s.Save(ctx, parse(t, fields), "y")
		kind(t, err, c.want)
		for _, patch := range []bool{false, true} {
			_, err = s.Update(ctx, parse(t, fields), store.UpdateOptions{UUID: "x", Patch: patch})
			kind(t, err, c.want)
		}
	}
	// What the server maintains counts for nothing.
	copies := fmt.Sprintf(`{"copies":[%q]}`, strings.Repeat("a", 3*most))
	_, err := s.Update(ctx, parse(t, copies), store.UpdateOptions{UUID: "x"})
	kind(t, err, errs.Denied)

	// A patch that removes is larger than what is left.
	all := make([]string, 60)
	for i := range all {
		all[i] = fmt.Sprintf(`"field-%02d":0`, i)
	}
	save(t, s, "z", "{"+strings.Join(all, ",")+"}")
	removes := strings.ReplaceAll("{"+strings.Join(all, ",")+`,"left":"`+strings.Repeat("a", most/2)+`"}`, ":0",
		":null")
	if _, err := s.Update(t.Context(), parse(t, removes), store.UpdateOptions{UUID: "z", Patch: true}); err != nil {
		t.Errorf("a patch of %d bytes: %v", len(removes), err)
	}
}
