package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/bits-and-blooms/bloom/v3"
)

func TestTheFilterHasTheFirstUsablePasswordsOfAList(t *testing.T) {
	const list = "short\nPassword\npassword\nmonkey\n\nSunshine1\npäßword\nbaseball\n"
	data, err := filterOf(strings.NewReader(list), 3)
	if err != nil {
		t.Fatal(err)
	}
	var filter bloom.BloomFilter
	if _, err := filter.ReadFrom(bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	for password, want := range map[string]bool{
		"password": true, "sunshine1": true, "päßword": true, // the first three
		"short": false, "monkey": false, // too short
		"Password": false, // folded before
		"baseball": false, // the fourth
	} {
		if got := filter.TestString(password); got != want {
			t.Errorf("%s: %v", password, got)
		}
	}
	again, err := filterOf(strings.NewReader(list), 3)
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("the same list makes another filter: %v", err)
	}
}

func TestTooShortAListIsRefused(t *testing.T) {
	if _, err := filterOf(strings.NewReader("password\nPASSWORD\nshort\n"), 2); err == nil ||
		err.Error() != "it has 1 usable passwords, not 2" {
		t.Error(err)
	}
}
