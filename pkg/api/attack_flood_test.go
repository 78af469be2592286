package api_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"belfry/pkg/account"
)

// The most recent sessions are kept.
func TestSessionsOfAUserAreLimited(t *testing.T) {
	p := newAttackFixture(t)
	ada := p.newBrowser()
	ada.wantStatus(ada.register("ada@example.com", "the password of ada"), http.StatusNoContent)
	first := ada.Jar
	for range 110 {
		again := p.newBrowser()
		again.wantStatus(again.login("ada@example.com", "the password of ada"), http.StatusNoContent)
		ada = again
	}
	p.auth.Close()
	list, err := p.auth.Sessions.List(t.Context(), ada.session())
	p.must(err)
	if len(list) != 100 || !list[len(list)-1].Current {
		t.Errorf("%d sessions", len(list))
	}
	ada.Jar = first
	if ada.currentUser() != "" {
		t.Error("the oldest session has not ended")
	}
}

// Hashes are the most expensive part of a request, so requests with a session
// are limited too.
func TestPasswordChangesAreLimitedByAddress(t *testing.T) {
	now := time.Now() // for as long as the requests take
	p := newAttackFixture(t, func(o *account.Options) {
		o.Limits.Address, o.Now = 5, func() time.Time { return now }
	})
	ada := p.newBrowser()
	ada.wantStatus(ada.register("ada@example.com", "password 0"), http.StatusNoContent)
	for i := range 4 {
		ada.wantStatus(ada.request("PUT", "/auth/email",
			fmt.Sprintf(`{"password":"password %d","newPassword":"password %d"}`, i, i+1)), http.StatusNoContent)
	}
	ada.wantStatus(ada.request("PUT", "/auth/email", `{"password":"password 4","newPassword":"password 5"}`),
		http.StatusTooManyRequests)
}
