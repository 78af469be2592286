package console_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"belfry/pkg/account"
)

// Behind a path of the base URL no place in a page is that of a route: templates and scripts make each of them below
// that path.
func TestNoTemplateNamesARouteByItself(t *testing.T) {
	literal := regexp.MustCompile(`(?:=["']|\(['"` + "`" + `])/[a-z]`)
	found := 0
	for _, pattern := range []string{"templates/*.html", "assets/*.js", "../pages/templates/*.html", "../login/*.js"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, ".min.js") {
				continue
			}
			found++
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				if literal.MatchString(line) {
					t.Errorf("%s:%d: %.200s", name, i+1, line)
				}
			}
		}
	}
	if found < 40 {
		t.Errorf("%d files were found", found)
	}
}

func TestTheConsoleBelowAPath(t *testing.T) {
	t.Parallel()
	const below = "/api"
	f := start(t, withStores(t, "Books"), func(o *account.Options) { o.BaseURL = "http://belfry.example.org" + below })
	place := regexp.MustCompile(
		`\s(href|src|action|hx-get|hx-post|data-options|data-objects|data-events|data-document)="([^"#]+)"`)
	found := 0
	for _, prefix := range []string{"", below} {
		for _, path := range []string{"/console/objects", "/console/objects/Books", "/console/objects/Books/new",
			"/console/none"} {
			for _, p := range place.FindAllStringSubmatch(f.get(f.Admin, prefix+path).Text, -1) {
				found++
				if !strings.HasPrefix(p[2], below+"/") {
					t.Errorf("%s has %s", path, p[0])
				}
			}
		}
		leads(t, f.get("", prefix+"/console/objects/Books?sort=x"),
			below+"/console/login?next=%2Fconsole%2Fobjects%2FBooks%3Fsort%3Dx")
		leads(t, f.post("", prefix+"/console/login",
			"login=ada@example.com&password=a+fine+password&next=/console/objects/Books"),
			below+"/console/objects/Books")
		shows(t, is(t, f.post("", prefix+"/console/objects/Books/new", "text={}", "Referer",
			"http://belfry.example.org"+below+"/console/objects/Books/new"), 401),
			`href="`+below+`/console/login?next=%2Fconsole%2Fobjects%2FBooks%2Fnew"`)
		r := f.get("", prefix+"/console/objects", "Hx-Request", "true", "Hx-Current-Url",
			"http://belfry.example.org"+below+"/console/objects/Books")
		r.HasHeader("Hx-Redirect", below+"/console/login?next=%2Fconsole%2Fobjects%2FBooks")
	}
	if found < 40 {
		t.Errorf("%d places were found", found)
	}
	is(t, f.get(f.Admin, "/apiconsole/objects"), 404)
}
