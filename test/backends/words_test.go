package backends

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"belfry/test/process"
)

// TestWordsAreFoundOnEachBackend: lists by words find the same objects in the same order on each backend, of those that the rule
// allows; the index is built from what there is, and follows what is written.
func TestWordsAreFoundOnEachBackend(t *testing.T) {
	t.Parallel()
	for name, backend := range map[string]func() string{
		"files": func() string { return "{}" }, "FerretDB": mongo,
		"dynalite": func() string { return dynamo(servers.dynalite()) }, "dynoxide": func() string { return dynamo(servers.dynoxide()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wordsAreFound(t, serveInProcess(t, fmt.Sprintf(`
backends: {shared: %s}
stores:
  Books:
    backend: shared
    uuid: client
    expose: {list: true}
    policy: {default: allow, list: object.hidden != true}
    search: {fields: [title, tags, author.name], language: en}
`, backend())))
		})
	}
}

func wordsAreFound(t *testing.T, at string) {
	server := &process.Server{URL: at}
	for uuid, fields := range map[string]string{
		"dick":   `"title":"The White Whale","tags":["sea","adventure"],"author":{"name":"Melville"},"year":1851,"hidden":false`,
		"film":   `"title":"The White Whale, a film of whales","tags":["film"],"year":1956,"hidden":false`,
		"atlas":  `"title":"Whales of the sea","year":1990,"hidden":false`,
		"secret": `"title":"A white whale that nobody may list","year":1851,"hidden":true`,
		"gone":   `"title":"White whale","year":1851,"hidden":false`,
		"other":  `"title":"Kim","author":{"name":"Kipling"},"year":1901,"hidden":false`,
	} {
		must(t, server, 201, "POST", "/books", fmt.Sprintf(`{"uuid":%q,%s}`, uuid, fields))
	}
	must(t, server, 204, "DELETE", "/books/gone", "")
	must(t, server, 200, "PUT", "/books/other", `{"title":"A last word"}`)
	list := func(q string, more ...string) string {
		v := url.Values{"q": {q}, "fields": {"none"}}
		for i := 0; i < len(more); i += 2 {
			v.Set(more[i], more[i+1])
		}
		return "/books?" + v.Encode()
	}
	process.Eventually(t, patience, func() error { // what was written last is in the index
		for q, want := range map[string]string{"word kipling": "[other]", "whale": "[atlas dick film]"} {
			r, err := ask(server, "GET", list(q), "")
			if err != nil {
				return err
			}
			if got := found(r); r.status != 200 || fmt.Sprint(slices.Sorted(slices.Values(got))) != want {
				return fmt.Errorf("%s: %d %s", q, r.status, r.body)
			}
		}
		return nil
	})
	for _, c := range []struct{ q, filter, want string }{
		{`whale`, ``, "atlas dick film"}, {`"white whale"`, ``, "dick film"}, {`white -film`, ``, "dick"}, {`wha*`, `year > 1900`, "atlas film"},
		{`sea melville`, ``, "dick"}, {`adventure`, `year == 1851 || year == 1852`, "dick"}, {`kim`, ``, ""},
	} {
		r := must(t, server, 200, "GET", list(c.q, "filter", c.filter, "count", "exact"), "")
		whole := found(r)
		if got := slices.Sorted(slices.Values(whole)); strings.Join(got, " ") != c.want || r.get("count.value") != fmt.Sprint(len(got)) || r.get("count.accuracy") != "exact" {
			t.Errorf("%s, filter %s: %v, want %s: %s", c.q, c.filter, got, c.want, r.body)
		}
		if c.filter != "" {
			continue
		}
		// The same in pages of one, to the end and back, once the index has merged what was written: until then it weighs words otherwise.
		process.Eventually(t, patience, func() error {
			var pages []string
			for cursor := ""; ; {
				page := must(t, server, 200, "GET", list(c.q, "limit", "1", "cursor", cursor), "")
				pages = append(pages, found(page)...)
				if before := page.get("before"); before != "" {
					back := found(must(t, server, 200, "GET", list(c.q, "limit", "1", "before", before), ""))
					if len(pages) < 2 || len(back) != 1 || back[0] != pages[len(pages)-2] {
						return fmt.Errorf("%s: before %v is %v", c.q, pages, back)
					}
				}
				if cursor = page.get("cursor"); cursor == "" || len(pages) > len(whole) {
					break
				}
			}
			if fmt.Sprint(pages) != fmt.Sprint(whole) {
				whole = found(must(t, server, 200, "GET", list(c.q), ""))
				return fmt.Errorf("%s: in pages %v, together %v", c.q, pages, whole)
			}
			return nil
		})
	}
}

// found returns the uuids of a page.
func found(r reply) (all []string) {
	for _, one := range gjson.GetBytes(r.body, "items.#.uuid").Array() {
		all = append(all, one.String())
	}
	return all
}
