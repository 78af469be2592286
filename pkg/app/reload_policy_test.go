package app

import (
	"slices"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app/plan"
	"belfry/test/manual/keys"
)

// A reload refuses what the tags of the configuration call a restart, and nothing else.
func TestAReloadRefusesWhatThePoliciesOfKeysSay(t *testing.T) {
	t.Parallel()
	documented, err := keys.Read("../../test/manual/keys/keys.yaml")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := documented.Examples()
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{
		"", "tracing: {endpoint: 'http://localhost:1'}\nbus: {url: 'nats://a', token: a}\n", "bus: {url: 'nats://a', token: b}\n", "bus: {url: 'nats://a'}\n",
		"stores: {A: {owner: a, map: {B: {key: k, target: t, sameOwner: true}}}, B: {owner: c}}\n", "stores: {A: {owner: b, map: {B: {key: l, target: u}}}, B: {owner: c}}\n",
		"stores: {A: {owner: b, map: {B: {key: l, target: t}, C: {key: l, target: t}}}, B: {owner: d}, C: {}}\nbackends: {more: {}}\n", "stores: {A: {owner: c, indexes: [c, d]}, B: {}}\n",
		"backends: {default: {type: mongodb}}\nbinaries: {b: {type: S3Storage, bucket: a, presign: 1h}}\nbackup: {s3: {bucket: a, prefix: x/}}\n",
	} {
		examples = append(examples, keys.Example{Path: "of this test " + string(rune('0'+i)), Text: []byte(text)})
	}
	all := loadExamples(t, examples)
	refused := 0
	for i, e := range all {
		for _, other := range []loaded{all[len(all)-1], all[(i+1)%len(all)], all[(i+7)%len(all)], all[(i*31+5)%len(all)]} {
			if e.err != nil || other.err != nil {
				t.Fatal(e.err, other.err)
			}
			refused += comparePolicies(t, e, other)
			comparePolicies(t, other, e)
		}
	}
	if refused < 100 {
		t.Errorf("only %d changes were refused", refused)
	}
}

// comparePolicies compares what a reload refuses with the policies of what has changed, and returns how many keys it refuses. A change can
// be of a key in a section that the other names.
func comparePolicies(t *testing.T, before, now loaded) int {
	t.Helper()
	var refused, restart []string
	says := map[string]string{}
	kind := map[string]bool{} // sections whose type has changed, of which Fixed names other keys as well
	for _, p := range plan.Fixed(before.config, now.config) {
		refused = append(refused, p.Key)
		says[p.Key] = p.Message
	}
	for _, c := range config.Changes(before.config, now.config) {
		if c.Policy != config.Live {
			restart = append(restart, c.Path)
		}
		if why := says[c.Path]; c.Policy == config.Refused && !strings.Contains(why, c.Command) || c.Policy == config.Restart && why != "" && !strings.Contains(why, "restart it") {
			t.Errorf("%s: %+v, and the reload says %q", c.Path, c, why)
		}
		if section, ok := strings.CutSuffix(c.Path, ".type"); ok {
			kind[section] = true
		}
	}
	within := func(a string) func(b string) bool {
		return func(b string) bool {
			return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".") || strings.HasPrefix(b, a+"[")
		}
	}
	for _, key := range refused {
		if section := key[:max(strings.LastIndexByte(key, '.'), 0)]; !slices.ContainsFunc(restart, within(key)) && !kind[section] {
			t.Errorf("from %s to %s: %s is refused, and its policy is live\n%s---\n%s", before.path, now.path, key, before.text, now.text)
		}
	}
	for _, key := range restart {
		if !slices.ContainsFunc(refused, within(key)) {
			t.Errorf("from %s to %s: %s needs a restart by its policy, and is not refused\n%s---\n%s", before.path, now.path, key, before.text, now.text)
		}
	}
	return len(refused)
}
