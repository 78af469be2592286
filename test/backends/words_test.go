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

// TestWordsAreFoundOnEachBackend: lists by words find the same objects in the same order on each backend, of those that
// the rule allows; the index is built from what there is, and follows what is written.
func TestWordsAreFoundOnEachBackend(t *testing.T) {
	t.Parallel()
	for name, backend := range map[string]func() string{
		"files": func() string { return "{}" }, "FerretDB": mongo,
		"dynalite": func() string { return dynamo(servers.dynalite()) },
		"dynoxide": func() string { return dynamo(servers.dynoxide()) },
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
		{`whale`, ``, "atlas dick film"}, {`"white whale"`, ``, "dick film"}, {`white -film`, ``, "dick"},
		{`wha*`, `year > 1900`, "atlas film"},
		{`sea melville`, ``, "dick"}, {`adventure`, `year == 1851 || year == 1852`, "dick"}, {`kim`, ``, ""},
	} {
		r := must(t, server, 200, "GET", list(c.q, "filter", c.filter, "count", "exact"), "")
		whole := found(r)
		if got := slices.Sorted(slices.Values(whole)); strings.Join(got, " ") != c.want ||
			r.get("count.value") != fmt.Sprint(len(got)) || r.get("count.accuracy") != "exact" {
			t.Errorf("%s, filter %s: %v, want %s: %s", c.q, c.filter, got, c.want, r.body)
		}
		if c.filter != "" {
			continue
		}
		// The same in pages of one, to the end and back, once the index has merged what was written: until then it
		// weighs words otherwise.
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

// TestSearchesTellNothingOnEachBackend: what others write that one may not list changes no reply to a search.
func TestSearchesTellNothingOnEachBackend(t *testing.T) {
	t.Parallel()
	for name, backend := range map[string]func() string{
		"files": func() string { return "{}" }, "FerretDB": mongo,
		"dynalite": func() string { return dynamo(servers.dynalite()) }, "dynoxide": func() string { return dynamo(servers.dynoxide()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			searchesTellNothing(t, serveInProcess(t, fmt.Sprintf(`
backends: {shared: %s}
stores:
  Notes:
    backend: shared
    uuid: client
    expose: {list: true}
    policy: {create: "true", list: object.public == true}
    search: {fields: [text, tags]}
`, backend())))
		})
	}
}

func searchesTellNothing(t *testing.T, at string) {
	server := &process.Server{URL: at}
	write := func(uuid string, public bool, text string) {
		must(t, server, 201, "POST", "/notes", fmt.Sprintf(`{"uuid":%q,"public":%t,"text":%q}`, uuid, public, text))
	}
	list := func(q, limit string) string {
		return "/notes?" + url.Values{"q": {q}, "limit": {limit}, "count": {"exact"}}.Encode()
	}
	indexed := func(marker string) {
		write(marker, true, marker)
		process.Eventually(t, patience, func() error {
			if r, err := ask(server, "GET", list(marker, "1"), ""); err != nil ||
				fmt.Sprint(found(r)) != "["+marker+"]" {
				return fmt.Errorf("%s: %w: %s", marker, err, r.body)
			}
			return nil
		})
	}
	told := func() (all []string) {
		for _, q := range []string{"ant bee", "ant", "be*", "zz*", "zebra", `"ant bee"`, "ant -zebra"} {
			for _, limit := range []string{"1", "10"} {
				r := must(t, server, 200, "GET", list(q, limit), "")
				all = append(all,
					fmt.Sprintf("%s: %v of %s, more %t", q, found(r), r.get("count.value"), r.get("cursor") != ""))
			}
		}
		return all
	}
	write("one", true, "ant ant ant bee")
	write("two", true, "ant bee bee bee")
	write("bee", true, "bee")
	indexed("first")
	before := told()
	for i := range 30 {
		write(fmt.Sprintf("hidden%d", i), false,
			fmt.Sprintf("zebra ant zz%d beetle%d %s", i, i, strings.Repeat("ant ", i)))
	}
	indexed("second")
	if after := told(); !slices.Equal(before, after) {
		t.Errorf("alone\n%s\nwith others\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	if has := "ant bee: [one] of 2, more true"; !slices.Contains(before, has) {
		t.Errorf("expected %q in %q", has, before)
	}
}

// found returns the uuids of a page.
func found(r reply) (all []string) {
	for _, one := range gjson.GetBytes(r.body, "items.#.uuid").Array() {
		all = append(all, one.String())
	}
	return all
}
