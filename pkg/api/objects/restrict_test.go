package objects_test

import (
	"encoding/json"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
)

// A restricted method has no route: 405 where another method of the path is
// exposed, else 404.
func TestRestricted(t *testing.T) {
	all := config.Restrict{Create: true, Update: true, Delete: true, Get: true}
	for _, c := range []struct {
		name     string
		expose   config.Expose
		statuses map[string]int // of a request that would be right
		allow    map[string]string
	}{
		{"nothing restricted", config.Expose{}, map[string]int{
			"POST /books": 201, "GET /books": 405, "GET /books/emma": 200, "PUT /books/emma": 200,
			"PATCH /books/emma": 200, "DELETE /books/emma": 204, "POST /books/emma": 405, "DELETE /books": 405,
			"BREW /books": 405,
		}, map[string]string{"/books": "POST", "/books/emma": "GET HEAD PUT PATCH DELETE"}},
		{"list", config.Expose{List: true, Restrict: config.Restrict{Create: true}}, map[string]int{
			"POST /books": 405, "GET /books": 200, "HEAD /books": 200,
		}, map[string]string{"/books": "GET HEAD"}},
		{"no create", config.Expose{Restrict: config.Restrict{Create: true}}, map[string]int{
			"POST /books": 404, "GET /books": 404, "GET /books/emma": 200,
		}, map[string]string{"/books": ""}},
		{"no update", config.Expose{Restrict: config.Restrict{Update: true}}, map[string]int{
			"PUT /books/emma": 405, "PATCH /books/emma": 405, "GET /books/emma": 200, "DELETE /books/emma": 204,
		}, map[string]string{"/books/emma": "GET HEAD DELETE"}},
		{"no get", config.Expose{Restrict: config.Restrict{Get: true}}, map[string]int{
			"GET /books/emma": 405, "HEAD /books/emma": 405, "PUT /books/emma": 200,
		}, map[string]string{"/books/emma": "PUT PATCH DELETE"}},
		{"no delete", config.Expose{Restrict: config.Restrict{Delete: true}}, map[string]int{
			"DELETE /books/emma": 405, "PUT /books/emma": 200,
		}, map[string]string{"/books/emma": "GET HEAD PUT PATCH"}},
		{"nothing exposed", config.Expose{Restrict: all}, map[string]int{
			"POST /books": 404, "GET /books": 404, "GET /books/emma": 404, "PUT /books/emma": 404,
			"PATCH /books/emma": 404, "DELETE /books/emma": 404,
		}, map[string]string{"/books": "", "/books/emma": ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := apitest.Start(t, func(o *api.Options) {
				c.expose.URL = "/books"
				apitest.ExposeOnly(o, o.Stores["Books"], c.expose)
			})
			for request, status := range c.statuses {
				createEmma(f)
				method, path, _ := strings.Cut(request, " ")
				r := f.Do(method, path, `{}`).Want(status)
				if status == 405 {
					wantAllow(t, r, c.allow[path])
				}
			}
			for path, methods := range c.allow {
				if methods == "" {
					f.Do("OPTIONS", path, "").Want(404)
				} else {
					wantAllow(t, f.Do("OPTIONS", path, "").Want(204), methods)
				}
			}
		})
	}
}

// The problem of a method that the configuration leaves out says by which key; that of one that never exists does not.
func TestAMethodThatIsNotExposedNamesItsKey(t *testing.T) {
	all := func(o *config.Expose) {
		o.Restrict = config.Restrict{Create: true, Update: true, Delete: true, Get: true}
	}
	for request, c := range map[string]struct {
		key string
		but func(*config.Expose) // what the path still has
	}{
		"GET /books":         {"expose.list is false", func(o *config.Expose) { o.Restrict.Create = false }},
		"POST /books":        {"expose.restrict.create is true", func(o *config.Expose) { o.List = true }},
		"GET /books/emma":    {"expose.restrict.get is true", func(o *config.Expose) { o.Restrict.Delete = false }},
		"PUT /books/emma":    {"expose.restrict.update is true", func(o *config.Expose) { o.Restrict.Get = false }},
		"PATCH /books/emma":  {"expose.restrict.update is true", func(o *config.Expose) { o.Restrict.Get = false }},
		"DELETE /books/emma": {"expose.restrict.delete is true", func(o *config.Expose) { o.Restrict.Get = false }},
		"POST /books/emma":   {"", func(o *config.Expose) { o.Restrict.Get = false }},
		"DELETE /books":      {"", func(o *config.Expose) { o.List = true }},
	} {
		t.Run(request, func(t *testing.T) {
			f := apitest.Start(t, func(o *api.Options) {
				books := config.Expose{URL: "/books"}
				all(&books)
				c.but(&books)
				apitest.ExposeOnly(o, o.Stores["Books"], books)
			})
			name := f.Books.Name()
			method, path, _ := strings.Cut(request, " ")
			says := func(detail string) {
				t.Helper()
				if c.key == "" && strings.Contains(detail, "expose") ||
					c.key != "" && !strings.Contains(detail, ": stores."+name+"."+c.key+"; this path takes ") {
					t.Errorf("it says %q", detail)
				}
			}
			says(f.Do(method, path, "{}").Want(405).Problem().Detail)
			if c.key == "expose.list is false" { // a batch has no lists
				return
			}
			var got struct {
				Results []struct{ Body struct{ Detail string } }
			}
			r := f.Do("POST", "/batch", `{"operations":[{"method":"`+method+`","path":"`+path+`"}]}`).Want(200)
			if err := json.Unmarshal([]byte(r.Text), &got); err != nil || len(got.Results) != 1 {
				t.Fatalf("%v: %s", err, r.Text)
			}
			if request != "POST /books" && request != "DELETE /books" { // POST is all that a collection has there
				says(got.Results[0].Body.Detail)
			}
		})
	}
}

// createEmma creates an object through its store, unless it exists.
func createEmma(f *apitest.Front) {
	f.Helper()
	if exists, err := f.Books.Exists(f.Context(), "emma"); err != nil || exists {
		f.Must(err)
		return
	}
	_, err := f.Books.Save(f.Context(), nil, "emma")
	f.Must(err)
}

func wantAllow(t *testing.T, r apitest.Reply, methods string) {
	t.Helper()
	allow := strings.Split(r.Header.Get("Allow"), ", ")
	want := append(strings.Fields(methods), "OPTIONS")
	if len(allow) != len(want) {
		t.Errorf("Allow %q, want %q", allow, want)
	}
	for _, m := range want {
		if !strings.Contains(r.Header.Get("Allow"), m) {
			t.Errorf("Allow %q lacks %s", allow, m)
		}
	}
}
