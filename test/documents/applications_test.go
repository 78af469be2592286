package documents

import (
	"net/url"
)

// applications logs a user in for applications.
func (c *client) applications(address, password string) {
	const (
		redirect  = "https://app.example.org/in"
		verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // of RFC 7636, appendix B
		challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
		form      = "Content-Type: application/x-www-form-urlencoded"
	)
	query := url.Values{"response_type": {"code"}, "redirect_uri": {redirect}, "code_challenge": {challenge},
		"code_challenge_method": {"S256"}, "state": {"s"}}
	c.ask(200, "GET", "/auth/authorize?"+query.Encode(), "")
	c.ask(302, "GET", "/auth/authorize?provider=github&"+query.Encode(), "")
	c.ask(400, "GET",
		"/auth/authorize?response_type=code&redirect_uri=https%3A%2F%2Fevil.example&code_challenge=x&code_challenge_method=S256", "")
	for _, prefer := range []string{"", "return=representation"} {
		c.ask(303, "POST", "/auth/email",
			url.Values{"authorize": {query.Encode()}, "login": {address}, "password": {password}}.Encode(), form)
		to, err := url.Parse(c.last.Header.Get("Location"))
		if err != nil || to.Query().Get("code") == "" {
			c.t.Fatalf("sent to %s: %v", to, err)
		}
		exchange := url.Values{"grant_type": {"authorization_code"}, "code": {to.Query().Get("code")},
			"redirect_uri": {redirect}, "code_verifier": {verifier}}.Encode()
		c.ask(200, "POST", "/auth/token", exchange, form, "Prefer: "+prefer)
		c.ask(400, "POST", "/auth/token", exchange, form)
	}
	c.ask(400, "POST", "/auth/token", `{"code":7}`)
	// app:secret.
	c.ask(401, "POST", "/auth/token", url.Values{"grant_type": {"authorization_code"}}.Encode(), form,
		"Authorization: Basic YXBwOnNlY3JldA==")
	c.ask(415, "POST", "/auth/token", `{}`, "Content-Type: text/plain")
}
