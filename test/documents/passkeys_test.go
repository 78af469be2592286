package documents

import (
	"strings"
	"testing"
)

// What browsers are given for a passkey is in the document, and whatever they reply that is not right is refused as the
// document says.
func TestPasskeysConformToTheDocument(t *testing.T) {
	c := newClient(t, serve(t, "testdata/passkeys.yaml"))
	const no = `{"id":"AA","rawId":"AA","type":"public-key","response":{"clientDataJSON":"AA","authenticatorData":"AA","signature":"AA"},"clientExtensionResults":{}}`
	c.ask(200, "POST", "/auth/passkey/options", "")
	c.ask(200, "POST", "/auth/passkey/options", "", "Prefer: return=representation")
	if c.last.text(t, "secret") == "" {
		t.Errorf("no secret: %s", c.last.body)
	}
	c.ask(400, "POST", "/auth/passkey", `{"credential":`+no+`}`)
	c.ask(400, "POST", "/auth/passkey", `{}`)
	c.ask(303, "POST", "/auth/passkey", "credential=x", "Content-Type: application/x-www-form-urlencoded")
	c.ask(401, "POST", "/auth/passkeys/registration", "")
	c.enter("ada@example.com")
	c.ask(200, "POST", "/auth/passkeys/registration", "")
	if !strings.Contains(string(c.last.body), `"residentKey":"required"`) {
		t.Errorf("the options are %s", c.last.body)
	}
	c.ask(400, "POST", "/auth/passkeys", `{"credential":`+no+`}`)
	for _, method := range []string{"GET", "HEAD"} {
		c.ask(200, method, "/auth/passkeys", "")
	}
	c.ask(404, "PATCH", "/auth/passkeys/none", `{"name":"phone"}`)
	c.ask(404, "POST", "/auth/passkeys/none", `{"remove":true}`)
	c.ask(404, "DELETE", "/auth/factors/passkey", "")
	c.ask(404, "POST", "/auth/second-factor/passkey", `{}`)
	c.ask(409, "PUT", "/auth/factors/passkey", "")
}
