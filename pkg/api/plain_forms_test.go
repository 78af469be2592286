package api_test

import (
	"net/http"
	"testing"
)

// Plain HTML forms, without a script, recover an account and log out.
func TestFormsRecoverAnAccountAndLogOut(t *testing.T) {
	p := newAttackFixture(t)
	ada := p.newBrowser()
	ada.wantStatus(ada.register("ada@example.com", "the password of ada"), http.StatusNoContent)
	p.deliverMails("", "")
	post := func(path, body, location string) response {
		t.Helper()
		r := ada.wantStatus(ada.request("POST", path, body, "Content-Type", "application/x-www-form-urlencoded"),
			http.StatusSeeOther)
		for name, want := range map[string]string{"Location": location, "Cache-Control": "no-store",
			"Referrer-Policy": "no-referrer"} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", path, body, name, got, want)
			}
		}
		return r
	}
	post("/auth/email/recovery", "login=none%40example.com", "/again?mail=sent")
	post("/auth/email/recovery", "login=ada%40example.com&token=&password=x", "/again?mail=sent")
	post("/auth/email/recovery", "login=", "/out?reason=invalid")
	post("/auth/email/recovery", "login=%zz", "/out?reason=invalid")
	post("/auth/email/validation", "login=ada%40example.com", "/register?mail=sent")
	post("/auth/email/validation", "email=nobody", "/out?reason=invalid")
	post("/auth/email/recovery", "login=ada%40example.com&token=wrong&password=a+better+password", "/out?reason=token")

	token := p.deliverMails("ada@example.com", "recover")
	// Who reads the mail on another device enters its token, and is led to where its link leads.
	typed := ada.wantStatus(ada.request("GET", "/auth/email/callback?login=ada%40example.com&token="+token[:9]+"+"+
		token[9:]+"%0A", ""), http.StatusFound)
	if to := typed.Header.Get("Location"); to != "/again?login=ada%40example.com&token="+token {
		t.Errorf("a typed token leads to %s", to)
	}
	post("/auth/email/recovery", "login=ada%40example.com&password=short&token="+token, "/out?reason=invalid")
	post("/auth/email/recovery", "login=ada%40example.com&password=a+better+password&token="+token,
		"/again?password=set")
	post("/auth/email/recovery", "login=ada%40example.com&password=another+password&token="+token,
		"/out?done=password&reason=token")
	// Sent again.
	post("/auth/email/recovery", "login=ada%40example.com&password=a+better+password&token="+token, "/again?password=set")
	ada.wantStatus(ada.login("ada@example.com", "a better password"), http.StatusNoContent)

	// A page of another origin logs nobody out.
	ada.wantStatus(ada.request("POST", "/auth/logout", "", "Sec-Fetch-Site", "cross-site"), http.StatusForbidden)
	if ada.currentUser() == "" {
		t.Error("ada was logged out")
	}
	post("/auth/logout", "", "/in")
	if ada.currentUser() != "" {
		t.Error("ada is still logged in")
	}
	post("/auth/logout", "", "/in")

	// Programs get what they got before.
	ada.wantStatus(ada.request("POST", "/auth/email/recovery",
		`{"login":"ada@example.com","token":"x","password":"a fine password"}`), http.StatusAccepted)
	ada.wantStatus(ada.request("PUT", "/auth/email/recovery",
		"login=ada%40example.com&token=x&password=a+fine+password", "Content-Type",
		"application/x-www-form-urlencoded"), http.StatusForbidden)
}
