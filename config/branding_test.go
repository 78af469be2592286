package config

import (
	"net/mail"
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

// The sender of mails has the name of the application. People read it in the console, so it is not encoded.
func TestTheSenderHasTheNameOfTheApplication(t *testing.T) {
	for _, name := range []string{"Kitchen", "Küche", `a "b" \ <c@d.e>, f`, "café 🔔"} {
		sender := (&Branding{Name: name}).named("no-reply@example.com")
		a, err := mail.ParseAddress(sender)
		if err != nil || a.Name != name || a.Address != "no-reply@example.com" || strings.Contains(sender, "=?") {
			t.Errorf("%s: %s, %v", name, sender, err)
		}
	}
	if own := (&Branding{Name: "Kitchen"}).named("Ada <ada@example.com>"); own != "Ada <ada@example.com>" {
		t.Error(own)
	}
}
