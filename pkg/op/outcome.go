package op

import (
	"cmp"
	"net/http"

	"belfry/pkg/httpkit"
)

// Outcome is the result of a request: the reply to a program, and the redirect for the browser of an HTML form. The
// reply may already have been sent.
type Outcome struct {
	Status int // of the reply to a program; 0: 200 with a body, 204 without
	Body   any // of that reply, as JSON; nil: none

	To     string                        // redirect target of the browser
	Page   func(*httpkit.Exchange) error // shows the browser a page instead
	Failed string                        // redirect target after an error; "" for the default

	Problem bool // the browser gets the problem of an error, as a program does
}

// Send replies with an outcome, to a program or to the browser of an HTML form.
func (o Outcome) Send(x *httpkit.Exchange, html bool) error {
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
