package event_test

import (
	"slices"
	"testing"

	"belfry/pkg/event"
)

func TestNoWildcardSelectsEventsOfAccounts(t *testing.T) {
	all := []string{"events.*.Store.>", "events.*.Register.>", "events.*.Binary.>"}
	for filter, want := range map[string][]string{
		"events.>":                       all,
		">":                              all,
		"events.*.>":                     all,
		"events.7.>":                     {"events.7.Store.>", "events.7.Register.>", "events.7.Binary.>"},
		"events.*.*.>":                   all,
		"events.*.*.*.>":                 {"events.*.Store.*.>", "events.*.Register.*.>", "events.*.Binary.*.>"},
		"events.*.*.*.Books.*":           {"events.*.Store.*.Books.*", "events.*.Binary.*.Books.*"},
		"*.*.*.LoggedIn.*.*":             {"*.*.Store.LoggedIn.*.*", "*.*.Binary.LoggedIn.*.*"},
		"events.*.*.Books.*":             {"events.*.*.Books.*"}, // names of one token
		"events.*.Register.*.*":          {"events.*.Register.*.*"},
		"events.*.Store.*.Books.*":       {"events.*.Store.*.Books.*"},
		"events.*.Auth.>":                {"events.*.Auth.>"},
		"events.*.Config.>":              {"events.*.Config.>"},
		"events.*.Auth.LoggedIn.Users.*": {"events.*.Auth.LoggedIn.Users.*"},
		"retry.x":                        {"retry.x"},
	} {
		if got := event.Narrow(filter); !slices.Equal(got, want) {
			t.Errorf("%s becomes %v, want %v", filter, got, want)
		}
	}
	for _, name := range event.Durable() {
		if got := slices.Contains(event.Unrestricted(), name); got == name.OnlyByName() {
			t.Errorf("%s is among the unrestricted: %t", name, got)
		}
		if got := slices.Contains(event.Auth(), name); got != name.IsAuth() {
			t.Errorf("%s is about accounts: %t", name, got)
		}
	}
}
