package documents

import (
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"github.com/tidwall/gjson"
)

// secondFactor sends the requests of second factors, and leaves none.
func (c *client) secondFactor() {
	c.ask(409, "PUT", "/auth/factors/totp", `{"code":"123456"}`)
	c.ask(409, "POST", "/auth/factors/recovery", "")
	c.ask(404, "DELETE", "/auth/factors/totp", "")
	c.ask(200, "POST", "/auth/factors/totp", "")
	secret := c.last.text(c.t, "secret")
	c.ask(403, "PUT", "/auth/factors/totp", `{"code":"none"}`)
	c.ask(400, "PUT", "/auth/factors/totp", `{"code":7}`)
	c.ask(200, "PUT", "/auth/factors/totp", `{"code":"`+totpCode(c.t, secret)+`"}`)
	c.keep()
	codes := gjson.GetBytes(c.last.body, "recoveryCodes").Array()
	if len(codes) != 10 {
		c.t.Fatalf("recovery codes: %s", c.last.body)
	}
	c.ask(409, "POST", "/auth/factors/totp", "")
	for _, method := range []string{"GET", "HEAD"} {
		c.ask(200, method, "/auth/factors", "")
	}
	c.ask(401, "POST", "/auth/email", `{"login":"ada@example.com","password":"battery staple"}`)
	c.ask(401, "POST", "/auth/email", `{"login":"ada@example.com","password":"battery staple"}`,
		"Prefer: return=representation")
	flow := c.last.text(c.t, "flow")
	c.ask(403, "POST", "/auth/second-factor", `{"flow":"`+flow+`","type":"recovery","code":"wrong"}`)
	c.ask(400, "POST", "/auth/second-factor", `{"flow":"`+flow+`","type":"email","code":"wrong"}`)
	c.ask(200, "POST", "/auth/second-factor", `{"flow":"`+flow+`","type":"recovery","code":"`+codes[0].String()+`"}`,
		"Prefer: return=representation")
	c.keep()
	c.ask(401, "POST", "/auth/second-factor", `{"flow":"`+flow+`","type":"recovery","code":"`+codes[1].String()+`"}`)
	c.ask(303, "POST", "/auth/second-factor", "type=totp&code=1", "Content-Type: application/x-www-form-urlencoded")
	c.ask(403, "POST", "/auth/step-up", `{"type":"recovery","code":"wrong"}`)
	c.ask(204, "POST", "/auth/step-up", `{"type":"recovery","code":"`+codes[1].String()+`"}`)
	c.keep()
	c.ask(200, "POST", "/auth/factors/recovery", "")
	c.ask(400, "POST", "/auth/second-factor/code", `{}`)
	c.ask(404, "DELETE", "/auth/factors/email", "")
	c.ask(202, "POST", "/auth/factors/email", "")
	c.ask(403, "PUT", "/auth/factors/email", `{"code":"none"}`)
	const form = "Content-Type: application/x-www-form-urlencoded"
	c.ask(200, "POST", "/auth/factors/recovery", "", form)
	c.ask(303, "POST", "/auth/factors/totp", "code=1", form)
	c.ask(303, "POST", "/auth/factors/email", "code=1", form)
	c.ask(303, "POST", "/auth/factors/passkey", "remove=true", form)
	c.ask(303, "POST", "/auth/step-up", "type=recovery&code=wrong", form)
	c.ask(303, "POST", "/auth/sessions/none", "remove=true", form)
	c.ask(303, "POST", "/auth/idents/none_email/address", "address=new@example.com", form)
	c.ask(303, "POST", "/auth/deletion", "undo=true", form)
	c.ask(303, "POST", "/auth/me/name", "name=Ada", form)
	c.ask(303, "POST", "/auth/me/picture", "hash=none", form)
	c.ask(303, "POST", "/auth/me/picture",
		"--b\r\nContent-Disposition: form-data; name=file; filename=a.png\r\n\r\n\x89PNG\r\n\x1a\n\r\n--b--\r\n",
		"Content-Type: multipart/form-data; boundary=b")
	c.ask(303, "POST", "/auth/email", "newPassword=short", form)
	c.ask(200, "PUT", "/auth/factors/email", `{"code":"`+c.inMail("Your code to log in", `log in is (\d{6})`)+`"}`)
	c.keep()
	c.ask(202, "POST", "/auth/second-factor/code", `{}`)
	c.ask(204, "DELETE", "/auth/factors/email", "")
	c.ask(404, "DELETE", "/auth/factors/passkey", "")
	c.ask(204, "DELETE", "/auth/factors/totp", "")
	c.ask(200, "POST", "/auth/factors/totp", "", form)
}

func totpCode(t *testing.T, secret string) string {
	t.Helper()
	code, err := totp.GenerateCode(secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return code
}
