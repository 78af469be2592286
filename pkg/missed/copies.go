package missed

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

// CopyLag is how far the copies that a reference has of its objects are behind them. Events of the source that do not
// change them count until they are handled.
type CopyLag struct {
	Copies  string    `json:"copies"`         // the store and the reference: "Recipes.author"
	Source  string    `json:"source"`         // the store of the named objects
	Since   time.Time `json:"since,omitzero"` // of the oldest change whose copies are not made; zero: they are up to date
	Seconds float64   `json:"seconds"`        // its age; 0: they are up to date
}

// Behind is their lag for people: "0s", "250ms", "2m3s".
func (c CopyLag) Behind() string {
	behind := time.Duration(c.Seconds * float64(time.Second))
	if behind < time.Second {
		return behind.Round(time.Millisecond).String()
	}
	return behind.Round(time.Second).String()
}

// Report is the reply on SubjectList.
type Report struct {
	Missed []Status
	Copies []CopyLag // nil from an earlier release
}

// FetchReport is Fetch with the lag of copies.
func FetchReport(ctx context.Context, conn *nats.Conn) (Report, error) {
	r, err := request(ctx, conn, SubjectList, struct{}{})
	return Report{Missed: r.Missed, Copies: r.Copies}, err
}

// list is the reply on SubjectList.
func (w *Watch) list(*nats.Msg) reply {
	r := reply{Missed: w.Missed()}
	if w.opts.Copies != nil {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout/2)
		defer cancel()
		r.Copies = w.opts.Copies(ctx)
	}
	return r
}
