package app

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/app/serving"
)

// Stores that no client may read or list, or whose reads an interceptor decides, have
// no event stream.
func TestOnlyReadableStoresHaveEventsForBrowsers(t *testing.T) {
	p := newPlace(t, `
listen: 127.0.0.1:0
bus: {listen: ""}
events: {heartbeat: 1s}
metrics: {listen: 127.0.0.1:0}
stores:
  Books: {expose: {list: true}}
  Writers: {expose: {url: /w, events: true, restrict: {create: true, update: true, delete: true}}, policy: owner}
  Silent: {expose: {list: true, restrict: {get: true}}}
  Asked: {expose: {list: true}, intercept: {get: [{name: somebody}], save: [{name: somebody}]}}
  Watched: {expose: {list: true, events: true}, intercept: {save: [{name: somebody}]}}
  Quiet: {expose: {list: true, events: false}}
  Unlisted: {expose: {}}
  Inner: {}
  Users: {expose: {events: true}}
`)
	a := p.start()
	var all []string
	streamed, getOnly := serving.EventStores(p.config, a.Set())
	if want := []string{"Users", "Watched", "Writers"}; !slices.Equal(getOnly, want) {
		t.Errorf("by get alone: %v, want %v", getOnly, want)
	}
	for _, s := range streamed {
		all = append(all, s.Name())
	}
	if want := []string{"Books", "Users", "Watched", "Writers"}; !slices.Equal(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
	for _, name := range []string{"Silent", "Asked", "Quiet", "Unlisted", "Inner", "Sessions", "Idents", "Tokens",
		"None"} {
		if status, text := p.do(a, "GET", "/events?store="+name, ""); status != http.StatusBadRequest ||
			!strings.Contains(text, "there are Books, Users, Watched, Writers") {
			t.Errorf("%s: %d, %s", name, status, text)
		}
	}
	p.want(a, "HEAD", "/events?store=Books&store=Users", "", http.StatusOK)
	if text := p.metrics(a); !strings.Contains(text, "\nbelfry_live_clients 0\n") {
		t.Error("no metrics of streams")
	}
}
