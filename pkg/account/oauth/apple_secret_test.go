package oauth

import (
	"testing"
	"time"

	"belfry/config"
	"belfry/test/provider"
)

// A secret is replaced long before it ends, and when the clock was set back.
func TestASecretForAppleIsReplaced(t *testing.T) {
	s, err := newAppleSecret(config.Apple{PrivateKey: config.Secret(provider.ApplePrivateKey()),
		Site: config.Site{ClientID: "client", Issuer: appleIssuer}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	s.now = func() time.Time { return now }
	current := func() string {
		text, err := s.current()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := current()
	for after, same := range map[time.Duration]bool{0: true, appleSecretReuse - time.Second: true,
		appleSecretReuse: false, -time.Second: false} {
		s.text, s.made = first, now
		s.now = func() time.Time { return now.Add(after) }
		if got := current() == first; got != same {
			t.Errorf("after %v: the same secret: %v", after, got)
		}
	}
	if appleSecretReuse+time.Minute > appleSecretTTL {
		t.Error("a secret is used that is about to end")
	}
}
