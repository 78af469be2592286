package policy_test

import (
	"strings"
	"testing"
	"time"

	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// TestRulesCompareTimesOfObjects with literals in whatever zone and precision, with now, and with timestamps.
func TestRulesCompareTimesOfObjects(t *testing.T) {
	o := parse(t,
		`{"uuid":"u","created":"2026-01-02T03:04:35.879000Z","updated":"2026-01-02T03:04:35.879000Z","text":"2026-01-02T03:04:35.879000Z","list":["2026-01-02"]}`)
	now := time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC)
	for expression, want := range map[string]bool{
		`CREATED > "2026-01-02T03:04:35Z"`: true, `CREATED >= '2026-01-02T03:04:35Z'`: true,
		`CREATED < "2026-01-02T03:04:35Z"`: false, `"2026-01-02T03:04:35Z" < CREATED`: true,
		`CREATED == "2026-01-02T03:04:35.879Z"`: true, `CREATED == "2026-01-02T05:04:35.879+02:00"`: true,
		`CREATED != "2026-01-02T05:04:35.879+02:00"`: false,
		`CREATED > "2026-01-02T03:04:35.879+02:00"`:  true, `"2026-01-02T03:04:35.879-00:01" > CREATED`: true,
		`CREATED < "2026-01-02T03:04:35.8790001Z"`: true, `CREATED >= "2026-01-02T03:04:35.8790001Z"`: false,
		`"2026-01-02T03:04:35.8790001Z" > CREATED`: true, `"2026-01-02T03:04:35.8790001Z" <= CREATED`: false,
		`CREATED == "2026-01-02T03:04:35.8790001Z"`: false, `CREATED != "2026-01-02T03:04:35.8790001Z"`: true,
		`CREATED <= "2026-01-02T03:04:35.8790001Z"`: true, `CREATED > "2026-01-02T03:04:35.8790001Z"`: false,
		`CREATED in ["x", "2026-01-02T04:04:35.879+01:00"]`: true, `CREATED in ["2026-01-02T03:04:35.8790001Z"]`: false,
		`CREATED < "2026-01-02T03:04:35.87900000000001Z"`: true, `CREATED < "9999-12-31T23:59:59-12:00"`: true,
		`CREATED > "2026-01"`: true, `CREATED.startsWith("2026-01-02T03:04:35.879000")`: true, `CREATED == TEXT`: true,
		`"2026-01-02" in object.list`: true,
		`CREATED < now`:               true, `now > CREATED`: true, `CREATED > now - duration("1h")`: true,
		`CREATED > now - duration("10m")`: false, `duration("10m") + now > CREATED`: true,
		`CREATED > timestamp("2026-01-02T05:04:35+02:00")`: true, `timestamp(CREATED) < now`: true,
		`now - timestamp(CREATED) < duration("1h")`: true,
		`CREATED > "2026-01-02t03:04:35z"`:          true, `CREATED < "2026-01-02 04:04:36+01:00"`: true,
		`CREATED == "2026-01-02t03:04:35.879z"`:                                                    true,
		`[1].exists(x, CREATED >= "2026-01-02T03:04:35Z") && !(CREATED >= "2026-01-02T03:04:36Z")`: true,
	} {
		for _, of := range []string{"object.created", `object["updated"]`, "user.created"} {
			text := strings.NewReplacer("CREATED", of, "TEXT", "object.text").Replace(expression)
			p := compile(t, policy.Rules{Get: text})
			err := p.Allow(t.Context(), policy.Get, policy.Input{User: o, Object: o, Now: now})
			if (err == nil) != want {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	for expression, want := range map[string]bool{`source.created >= "2026-01-02T03:04:35Z"`: true,
		`source.updated < "2026-01-02T03:04:35Z"`: false} {
		c, problems := policy.CompileCondition(expression)
		if len(problems) > 0 || c.Holds(o.Encode()) != want {
			t.Errorf("%s: %v", expression, problems)
		}
	}
	for _, expression := range []string{
		`object.created < "2026-01-02T03:04:36+00:00"`, `created < "2026-01-02T03:04:36Z"`,
		`created >= "2026-01-02T03:04:35Z"`, `created < timestamp("2026-01-02T05:04:36+02:00")`,
		`created in ["2026-01-02T05:04:35.879+02:00"]`,
	} {
		c, problems := policy.CompileComputed(map[string]string{"early": expression},
			policy.Known{Types: map[string]string{"created": "string"}})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		computed := object.Object{"created": o["created"]}
		if failed := c.Set(computed); len(failed) > 0 || string(computed["early"]) != "true" {
			t.Errorf("%s: %s, %v", expression, computed["early"], failed)
		}
	}
}

// TestReservedWordsInRulesAreNamed, with how a field of this name is written.
func TestReservedWordsInRulesAreNamed(t *testing.T) {
	for expression, want := range map[string]string{
		`object.in == 1`: `object["in"]`, `in == 1`: `object["in"]`, `object.a.in == 1`: `object["in"]`,
		`object.true == 1`: `object["true"]`, `object.null == 1`: `object["null"]`,
		`as == 1`: `object["as"]`, `namespace == 1`: `object["namespace"]`, `break == 1`: `object["break"]`,
		`object.a = 1`: `write == to compare`, `object.a & true`: `write && to join`,
		`object.a | true`: `write || to join`, `object.größe == 1`: `in brackets`,
	} {
		_, problems := policy.Compile(policy.Rules{Get: expression})
		found := ""
		for _, p := range problems {
			found += p.Message + "\n"
		}
		if !strings.Contains(found, want) {
			t.Errorf("%s: %s, want %s", expression, found, want)
		}
	}
	for _, name := range []string{"in", "true", "null", "as", "break", "namespace", "größe", "first-name"} {
		p := compile(t, policy.Rules{Get: `object["` + name + `"] == 1`})
		if err := p.Allow(t.Context(), policy.Get, policy.Input{Object: parse(t, `{"`+name+`":1}`)}); err != nil {
			t.Errorf("object[%q]: %v", name, err)
		}
	}
}
