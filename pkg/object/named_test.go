package object_test

import (
	"strings"
	"testing"

	"belfry/pkg/object"
)

func TestWhatAValueNames(t *testing.T) {
	for value, want := range map[string]struct{ uuid, why string }{
		`"a"`:                         {"a", ""},
		`"1"`:                         {"1", ""},
		`"01"`:                        {"01", ""},
		`1`:                           {"1", ""},
		`0`:                           {"0", ""},
		`9223372036854775807`:         {"9223372036854775807", ""},
		`1000000000000000000`:         {"1000000000000000000", ""},
		`9223372036854775808`:         {"", "must be at most 9223372036854775807 as a number"},
		`10000000000000000000`:        {"", "must be at most 9223372036854775807 as a number"},
		`1.0`:                         {"", "without sign, fraction and exponent, is 1.0"},
		`1e3`:                         {"", "without sign, fraction and exponent, is 1e3"},
		`1E3`:                         {"", "without sign, fraction and exponent, is 1E3"},
		`-1`:                          {"", "without sign, fraction and exponent, is -1"},
		`-0`:                          {"", "without sign, fraction and exponent, is -0"},
		`true`:                        {"", "is a boolean"},
		`{"uuid":"a"}`:                {"", "is an object"},
		`["a"]`:                       {"", "is an array"},
		`null`:                        {"", ""},
		``:                            {"", ""},
		`""`:                          {"", "not a uuid"},
		`".a"`:                        {"", "not a uuid"},
		`"a b"`:                       {"", "not a uuid"},
		strings.Repeat("1", 50):       {"", "must be at most"},
		"-" + strings.Repeat("1", 50): {"", "is a longer number"},
	} {
		uuid, ok := object.Named([]byte(value))
		if why := object.WhyUnnamed([]byte(value)); uuid != want.uuid && ok || ok != (want.uuid != "") ||
			!strings.Contains(why, want.why) || (why == "") != (want.why == "") {
			t.Errorf("%s names %q, %v, %q, want %q, %q", value, uuid, ok, why, want.uuid, want.why)
		}
		if got, want := object.IsNumberNamed([]byte(value)), ok && value[0] != '"'; got != want {
			t.Errorf("%s is a number that names: %v", value, got)
		}
	}
}
