package console_test

import (
	"net/http"
	"strings"
	"testing"
)

// Forms of who is no admin are small: those of a login.
func TestFormsOfStrangersAreSmall(t *testing.T) {
	t.Parallel()
	f, token := startEmpty(t)
	large := "&more=" + strings.Repeat("a", 64<<10)
	for path, form := range map[string]string{
		"/console/first":         first(token, "ada@example.com", "a fine password"),
		"/console/login":         "login=ada@example.com&password=a+fine+password",
		"/console/second-factor": "type=totp&code=123456",
	} {
		r := is(t, f.post("", path, form+large), http.StatusRequestEntityTooLarge)
		shows(t, r, "larger than 65536 bytes")
	}
	cookie := f.post("", "/console/first", first(token, "ada@example.com", "a fine password")).Cookies()[0]
	// An admin's may have an object of the largest size.
	is(t, f.post(cookie.Value, "/console/login", "login=ada@example.com&password=a+fine+password"+large),
		http.StatusSeeOther)
}
