package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestOneFormLeadsAnywhere(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	l.save("Books", "emma", `{"title":"Emma"}`)
	shows(t, is(t, l.get(l.Admin, "/console/go"), http.StatusOK), `action="/console/go"`)
	for query, found := range map[string]string{
		"book": `<a href="/console/objects/Books">Books</a>`, "OBJ": `<a href="/console/objects">Objects</a>`,
		"emma": `<a href="/console/objects/Books/object/emma">`, "back up": `href="/console/docs/guides/back-up`,
		"zqxwv": "Nothing was found",
	} {
		shows(t, is(t, l.get(l.Admin, "/console/go?q="+url.QueryEscape(query)), http.StatusOK), found)
	}
	part := is(t, l.get(l.Admin, "/console/go?q=emma", "Hx-Request", "true"), http.StatusOK)
	shows(t, part, `<li role="option" data-url="/console/objects/Books/object/emma">`)
	if strings.Contains(part.Text, "<html") {
		t.Error("a part is a whole page")
	}
	for _, query := range []string{strings.Repeat("x", 5000), "%00%ff", "em", "..", "<script>", "a@b"} {
		r := is(t, l.get(l.Admin, "/console/go?q="+url.QueryEscape(query)), http.StatusOK)
		if strings.Contains(r.Text, "<script>") {
			t.Error("a query is not escaped")
		}
	}
	is(t, l.get(l.User, "/console/go?q=emma"), http.StatusForbidden)
	leads(t, l.get("", "/console/go?q=emma"), "/console/login?next=%2Fconsole%2Fgo%3Fq%3Demma")
}

func TestTheThemeIsOfABrowser(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"))
	for _, theme := range []string{"light", "dark"} {
		r := f.post(f.Admin, "/console/theme", "theme="+theme, "Referer", "http://belfry.example.org/console/objects/Books")
		leads(t, r, "/console/objects/Books")
		c := r.Cookies()[0]
		if c.Value != theme || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge <= 0 {
			t.Errorf("cookie %+v", c)
		}
		shows(t, f.get("", "/console/objects", "Cookie", "belfry="+f.Admin+"; belfry-console-theme="+theme),
			`<html lang="en" data-theme="`+theme+`">`)
	}
	if r := f.post(f.Admin, "/console/theme", "theme=system"); r.Cookies()[0].MaxAge >= 0 {
		t.Errorf("cookie %+v", r.Cookies()[0])
	}
	is(t, f.post(f.Admin, "/console/theme", "theme=pink"), http.StatusBadRequest)
	is(t, f.post(f.User, "/console/theme", "theme=dark"), http.StatusForbidden)
	shows(t, f.get("", "/console/objects", "Cookie", "belfry="+f.Admin+`; belfry-console-theme=x"><b>`), `<html lang="en">`)
}
