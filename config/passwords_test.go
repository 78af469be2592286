package config

import (
	"strings"
	"testing"
	"time"
)

func TestCommonPasswordsAreRefusedByDefaultAndNoServerIsAsked(t *testing.T) {
	equal(t, "passwords", mustParse(t, "{}").Authentication.Passwords,
		Passwords{Common: true, Breached: Breached{Timeout: time.Second, MinCount: 1}})
	off := mustParse(t, "authentication: {passwords: {common: false}}").Authentication.Passwords
	equal(t, "common", off.Common, false)
	equal(t, "minScore", mustParse(t, "authentication: {passwords: {minScore: 4}}").Authentication.Passwords.MinScore,
		int64(4))
}

func TestWrongValuesOfPasswordsAreProblems(t *testing.T) {
	for text, want := range map[string]string{
		"common: 1": "authentication.passwords.common: expected true or false",
		"comon: true": "authentication.passwords.comon: unknown key; did you " +
			"mean common?",
		"minScore: 5": "authentication.passwords.minScore: expected a whole " +
			"number from 0 to 4",
		"minScore: -1": "authentication.passwords.minScore: expected a whole " +
			"number from 0 to 4",
		"minScore: strong": "authentication.passwords.minScore: expected a whole " +
			"number from 0 to 4",
		"breached: true": "authentication.passwords.breached: expected keys " +
			"with values",
		"breached: {uri: 'https://a.example'}": "authentication.passwords.breached.uri: unknown key; " +
			"did you mean url?",
		"breached: {url: a.example}":         "authentication.passwords.breached.url: expected a URL",
		"breached: {url: 'ftp://a.example'}": "authentication.passwords.breached.url: expected a URL",
		"breached: {url: 'https://u:p@a.example'}": "authentication.passwords.breached.url: expected a URL " +
			"without user and password",
		"breached: {url: 'https://a.example/?a'}": "authentication.passwords.breached.url: expected a URL " +
			"without a query",
		"breached: {url: 'https://a.example', timeout: 1m}": "authentication.passwords.breached.timeout: expected a " +
			"duration from 10ms to 10s",
		"breached: {url: 'https://a.example', minCount: 0}": "authentication.passwords.breached.minCount: expected a " +
			"whole number from 1 to 1000000000",
		"breached: {timeout: 1s}": "authentication.passwords.breached.timeout: needs url",
		"breached: {minCount: 2}": "authentication.passwords.breached.minCount: needs url",
	} {
		_, err := Parse("belfry.yaml", []byte("authentication: {passwords: {"+text+"}}\n"), environment)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
