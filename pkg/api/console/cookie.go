package console

import (
	"encoding/base64"
	"encoding/json"
)

const (
	keptAge  = 400 * 24 * 60 * 60 // seconds, the longest that browsers keep a cookie
	maxValue = 4 << 10            // bytes of a cookie, which is the most that browsers keep
)

// setCookie keeps a value in a cookie of this browser, for some seconds.
func (r *request) setCookie(name string, value any, age int) error {
	text, err := json.Marshal(value)
	if err == nil {
		r.console.sessions.SetCookie(r.Exchange, name, base64.RawURLEncoding.EncodeToString(text), age)
	}
	return err
}

// removeCookie removes a cookie of this browser.
func (r *request) removeCookie(name string) { r.console.sessions.SetCookie(r.Exchange, name, "", -1) }

// cookieValues returns the values of a cookie, of at most so many bytes each. Anyone can have set it.
func cookieValues[T any](r *request, name string, most int) (all []T) {
	for _, cookie := range r.console.sessions.Cookie(r.Exchange, name) {
		var value T
		text, err := base64.RawURLEncoding.DecodeString(cookie)
		if err == nil && len(text) <= most && json.Unmarshal(text, &value) == nil {
			all = append(all, value)
		}
	}
	return all
}
