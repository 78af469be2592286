package op

import (
	"cmp"
	"net/http"

	"belfry/pkg/api/kit"
)

// Outcome is what a request led to: the reply to a program, and where the browser of an HTML form continues. The reply
// may have been sent already.
type Outcome struct {
	Status int // of the reply to a program; 0: 200 with a body, 204 without
	Body   any // of that reply, as JSON; nil: none

	To     string                    // where the browser continues
	Page   func(*kit.Exchange) error // shows the browser a page instead
	Failed string                    // where it continues after an error; "": as after any

	Problem bool // the browser gets the problem of an error, as a program does
}

// Send replies with an outcome, to a program or to the browser of an HTML form.
func (o Outcome) Send(x *kit.Exchange, html bool) error {
	switch {
	case x.Replied():
		return nil
	case html && o.Page != nil:
		return o.Page(x)
	case html:
		x.Redirect(o.To)
		return nil
	case o.Body != nil:
		return x.SendValue(cmp.Or(o.Status, http.StatusOK), o.Body)
	default:
		return x.SendStatus(cmp.Or(o.Status, http.StatusNoContent))
	}
}
