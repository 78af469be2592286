package browser

import "testing"

// testAPI sends a request from the viewer of the API, with the session.
func (f *fixture) testAPI(t *testing.T) {
	f.open(t, "/console/api")
	f.shows(t, "/auth/me")
	f.click(t, "#operations-Login-getMe .opblock-summary-control")
	f.press(t, "Try it out")
	f.press(t, "Execute")
	f.shows(t, `"admin": true`)
	f.good(t, "console-api-request")
}
