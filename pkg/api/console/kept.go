package console

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"belfry/pkg/errs"
)

// kept is the data of the page that replies to a form when the session has ended: what was typed is in it, for another
// try. The client has sent it, from a page of belfry's own origin: a page of another one is refused before.
type kept struct {
	Why, Do string
	Link    string // where that is done
	Large   bool   // the form is too large
	Values  []keptValue
}

type keptValue struct{ Name, Value string }

// secretInput begins the names of inputs for secrets, which no page repeats.
const secretInput = "secret:"

// keep replies to a form with what it has. It reads no more of it than of any form of strangers.
func (r *request) keep(link, why, do string) error {
	k := kept{Why: why, Do: do, Link: link}
	if r.Partial() {
		return r.render(http.StatusUnauthorized, "kept", "ended", k)
	}
	form, err := r.Form()
	if k.Large = errors.Is(err, errs.TooLarge); err != nil && !k.Large {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(form)) {
		if strings.HasPrefix(name, secretInput) {
			continue // it is typed again
		}
		for _, value := range form[name] {
			k.Values = append(k.Values, keptValue{name, value})
		}
	}
	return r.page(http.StatusUnauthorized, "kept", "Nothing has been saved", k)
}

// session reports to a script that the session still counts, before it sends a form.
func (c *Console) session(r *request) error {
	r.WriteHeader(http.StatusNoContent)
	return nil
}
