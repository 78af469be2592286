package console

import (
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

const themeCookie = "belfry-console-theme"

// themes are the color schemes that can be chosen besides that of the system.
var themes = []string{"light", "dark"}

// theme returns the color scheme that was chosen in this browser; "" for that of the system. The server knows it, so
// that no page is shown in another one first.
func (c *Console) theme(x *httpkit.Exchange) string {
	for _, value := range c.sessions.Cookie(x, themeCookie) {
		if slices.Contains(themes, value) {
			return value
		}
	}
	return ""
}

// setTheme chooses a color scheme in this browser.
func (c *Console) setTheme(r *request) error {
	form, err := r.Form()
	if err != nil {
		return err
	}
	switch chosen := form.Get("theme"); {
	case slices.Contains(themes, chosen):
		c.sessions.SetCookie(r.Exchange, themeCookie, chosen, keptAge)
	case chosen == "system":
		r.removeCookie(themeCookie)
	default:
		return errs.New(errs.Invalid, "theme: choose system, light or dark")
	}
	return r.Redirect(r.sender(), "")
}
