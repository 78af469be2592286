package doctor

import (
	"net/url"
	"slices"
	"strings"
)

// hidden stands for a secret.
const hidden = "[secret]"

// minSecret is the length from which a text is taken for a secret: a shorter one is in every other word.
const minSecret = 3

// Redact replaces secrets in all texts of the report: checks quote replies of servers, and a server may quote what it
// was sent. A secret that is a URL hides its password as well, as it is written and as it is sent.
func (r *Report) Redact(secrets []string) {
	var all []string
	add := func(secret string) {
		if len(secret) >= minSecret {
			all = append(all, secret)
		}
	}
	for _, secret := range secrets {
		secret = strings.TrimRight(secret, "\r\n")
		add(secret)
		if u, err := url.Parse(secret); err == nil && u.User != nil {
			password, _ := u.User.Password()
			add(password)
			add(url.QueryEscape(password))
			add(url.PathEscape(password))
		}
		add(url.QueryEscape(secret))
	}
	// The longest first: one that contains another would leave its rest.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for i := range r.Findings {
		f := &r.Findings[i]
		for _, text := range []*string{&f.Subject, &f.Says, &f.Do} {
			for _, secret := range all {
				*text = strings.ReplaceAll(*text, secret, hidden)
			}
		}
	}
}
