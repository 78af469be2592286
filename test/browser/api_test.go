package browser

import (
	"errors"
	"testing"
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
	f.fill(t, ".operation-filter-input", "Authors") // which also leaves less for axe to read
	f.until(t, func() error {
		left, err := attempt[bool](f, `document.querySelector("#operations-Login-getMe") !== null`)
		if err == nil && left {
			err = errors.New("operations of another tag are shown")
		}
		return err
	})
	f.click(t, create+".opblock-summary-control")
	f.click(t, create+".try-out__btn")
	f.fill(t, create+"textarea", `{"uuid":"shelley","name":"Mary Shelley"}`)
	f.click(t, create+".execute")
	f.shows(t, "location: /authors/shelley")
	f.good(t, "console-api")
	f.open(t, "/console/objects/Authors/object/shelley/history")
	f.shows(t, "by "+address)
}
