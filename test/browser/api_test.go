package browser

import (
	"errors"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// testAPI sends requests from the viewer of the API, with the session: one that reads who that is of, and one that
// writes, which is an event of that user.
func (f *fixture) testAPI(t *testing.T) {
	f.open(t, "/console/api")
	f.shows(t, "/auth/me")
	const me, create = "#operations-Login-getMe ", "#operations-Authors-createAuthors "
	f.click(t, me+".opblock-summary-control")
	f.click(t, me+".try-out__btn")
	f.click(t, me+".execute")
	f.shows(t, `"admin": true`)
	f.paste(t, ".operation-filter-input", "Authors") // which also leaves less for axe to read
	f.until(t, func() error {
		left, err := attempt[bool](f, `document.querySelector("#operations-Login-getMe") !== null`)
		if err == nil && left {
			err = errors.New("operations of another tag are shown")
		}
		return err
	})
	f.click(t, create+".opblock-summary-control")
	f.click(t, create+".try-out__btn")
	f.run(t, chromedp.WaitVisible(chromedp.CSS(create+"textarea")))
	f.paste(t, create+"textarea", `{"uuid":"shelley","name":"Mary Shelley"}`)
	f.click(t, create+".execute")
	f.shows(t, "location: /authors/shelley")
	f.good(t, "console-api")
	f.open(t, "/console/objects/Authors/object/shelley/history")
	f.shows(t, "by "+address)
}

// paste sets a field of the viewer at once: it draws all operations again for each letter that is typed.
func (f *fixture) paste(t *testing.T, selector, text string) {
	t.Helper()
	evaluate[bool](t, f, fmt.Sprintf(`(() => {
		const field = document.querySelector(%q);
		Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value").set.call(field, %q);
		return field.dispatchEvent(new Event("input", { bubbles: true }));
	})()`, selector, text))
}
