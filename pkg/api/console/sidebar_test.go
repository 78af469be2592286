package console_test

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
	"belfry/pkg/api/console"
)

// stored returns the value of a cookie that a reply sets.
func stored(r apitest.Reply, name string) string {
	for _, c := range r.Cookies() {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

func TestTheSidebarHasEachStoreAndEachView(t *testing.T) {
	t.Parallel()
	o := withStores(t, "Authors", "Books")
	o.Live, o.API = &console.Live{}, console.NewAPI(nil)
	f := start(t, o)
	r := is(t, f.get(f.Admin, "/console/objects/Books"), http.StatusOK)
	shows(t, r, `<nav id="side" class="side" aria-label="Console" popover>`, `popovertarget="side">Menu<`,
		`<a href="/console/objects/Authors">Authors</a>`,
		`<a href="/console/objects/Books" aria-current="page">Books</a>`, `<a href="/console/live">Events</a>`,
		`<a href="/console/objects">Objects</a>`, `<a href="/console/api">API</a>`)
	if strings.Contains(r.Text, "side-filter") || strings.Contains(r.Text, "New store") {
		t.Error("two stores need no filter, and nobody can add one here")
	}
	for _, path := range []string{"/console/login", "/console/objects"} {
		if r := f.get(f.User, path); strings.Contains(r.Text, `id="side"`) {
			t.Errorf("%s shows the sidebar to a user who is not an admin", path)
		}
	}
}

func TestManyStoresAreFiltered(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 40 {
		names = append(names, "Store"+strconv.Itoa(10+i))
	}
	f := start(t, withStores(t, names...))
	r := is(t, f.get(f.Admin, "/console/objects"), http.StatusOK)
	shows(t, r, `id="side-filter"`)
	for _, name := range names {
		shows(t, r, `href="/console/objects/`+name+`">`)
	}
}

func TestStoresArePinnedInABrowser(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Authors", "Books", "Reviews"))
	const at = "http://belfry.example.org/console/objects/Reviews"
	shows(t, is(t, f.get(f.Admin, "/console/objects/Reviews"), http.StatusOK), `action="/console/pins"`,
		`name="pin" value="true" aria-label="Pin Reviews"`)
	r := f.post(f.Admin, "/console/pins", "store=Reviews&pin=true", "Referer", at)
	leads(t, r, "/console/objects/Reviews")
	pins := "belfry-console-pins=" + stored(r, "belfry-console-pins")
	page := is(t, f.get("", "/console/objects/Reviews", "Cookie", "belfry="+f.Admin+"; "+pins), http.StatusOK)
	shows(t, page, `name="pin" value="false" aria-label="Unpin Reviews"`)
	if strings.Index(page.Text, "/objects/Reviews") > strings.Index(page.Text, "/objects/Authors") {
		t.Error("a pinned store is not the first")
	}
	r = f.post("", "/console/pins", "store=Reviews&pin=false", "Cookie", "belfry="+f.Admin+"; "+pins,
		"Referer", "https://evil.example.org/x")
	leads(t, r, "/console")
	if text, _ := base64.RawURLEncoding.DecodeString(stored(r, "belfry-console-pins")); string(text) != "[]" {
		t.Errorf("pins %s", text)
	}

	is(t, f.post(f.Admin, "/console/pins", "store=Sessions&pin=true"), http.StatusNotFound)
	is(t, f.post(f.User, "/console/pins", "store=Books&pin=true"), http.StatusForbidden)
	leads(t, f.post("", "/console/pins", "store=Books&pin=true"), "/console/login")
	for _, wrong := range []string{"%", "e30", "W10", base64.RawURLEncoding.EncodeToString([]byte(`["Secrets","<b>"]`)),
		strings.Repeat("A", 3000)} {
		r := is(t, f.get("", "/console/objects", "Cookie", "belfry="+f.Admin+"; belfry-console-pins="+wrong), http.StatusOK)
		if strings.Contains(r.Text, "Secrets") || strings.Contains(r.Text, "<b>") {
			t.Errorf("a cookie shows what is no store: %s", wrong)
		}
	}
}

func TestOnlySoManyStoresArePinned(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 13 {
		names = append(names, "Store"+strconv.Itoa(10+i))
	}
	f := start(t, withStores(t, names...))
	pins := ""
	for i, name := range names {
		r := f.post("", "/console/pins", "store="+name+"&pin=true", "Cookie", "belfry="+f.Admin+"; belfry-console-pins="+pins)
		if i == 12 {
			shows(t, is(t, r, http.StatusConflict), "unpin one first")
			continue
		}
		pins = stored(is(t, r, http.StatusSeeOther), "belfry-console-pins")
	}
}

// TestFormsOfTheSidebarLeadToPages chooses a theme and a pin on pages whose path GET may not serve.
func TestFormsOfTheSidebarLeadToPages(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"))
	for at, page := range map[string]string{
		"/console/objects/Books/object/emma/files/cover/0/delete": "/console/objects/Books/object/emma",
		"/console/objects/Books/object/emma/undelete":             "/console/objects/Books/object/emma",
		"/console/objects/Books/object/emma/undo":                 "/console/objects/Books/object/emma",
		"/console/objects/Books/check?from=emma":                  "/console/objects/Books",
		"/console/objects/Books/object/emma/delete":               "/console/objects/Books/object/emma/delete",
		"/console/objects/Books?filter=year+%3E+1900":             "/console/objects/Books?filter=year+%3E+1900",
		"/console/pins":                 "/console",
		"/console/":                     "/console/",
		"/console/objects//Books/check": "/console",
		"/console/../login":             "/console",
		"/login":                        "/console",
	} {
		referer := []string{"Referer", "http://belfry.example.org" + at}
		leads(t, f.post(f.Admin, "/console/theme", "theme=dark", referer...), page)
		leads(t, f.post(f.Admin, "/console/pins", "store=Books&pin=true", referer...), page)
	}
	leads(t, f.post("", "/console/objects/Books/object/emma/undelete", "", "Referer",
		"http://belfry.example.org/console/objects/Books/object/emma/undelete"),
		"/console/login?next=%2Fconsole%2Fobjects%2FBooks%2Fobject%2Femma")
}
