package config

import (
	"strings"
	"testing"
)

// A name that can't be in the subject of a mail would keep every mail from being sent.
func TestNamesThatMailsCanNotHaveAreRefused(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"a control character", `branding: {name: "Kit\u0000chen"}`, []string{
			"1:12: branding.name: has a control character, which the subject of a mail can't have: remove it"}},
		{"an encoded word", `branding: {name: "=?utf-8?q?a?="}`, []string{
			"1:12: branding.name: contains =?, which starts an encoded word in the subject of a mail: remove it"}},
		{"a long one", "branding: {name: " + strings.Repeat("é", 61) + "}", []string{
			"1:12: branding.name: expected at most 60 characters"}},
	})
	name := "branding: {name: " + strings.Repeat("é", 60) + "}"
	if c, err := Parse("belfry.yaml", []byte(name), environment); err != nil || c.Branding.Name != strings.Repeat("é", 60) {
		t.Error(err)
	}
}
