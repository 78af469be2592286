package objects_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/account/sessions"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
)

type page struct {
	Items []struct {
		UUID string
		Year int
	}
	Cursor *string
}

// linked returns where a header Link of a relation leads; "" for none.
func linked(r apitest.Reply, relation string) string {
	for _, link := range r.Header["Link"] {
		if target, found := strings.CutSuffix(strings.TrimPrefix(link, "<"), `>; rel="`+relation+`"`); found {
			return target
		}
	}
	return ""
}

func TestListPages(t *testing.T) {
	f := apitest.Start(t)
	for i := range 5 {
		f.Do("POST", "/books", fmt.Sprintf(`{"uuid":"b%d","year":%d,"secret":1}`, i, 1900+i)).Want(201)
	}
	var seen []string
	next := "/books?limit=2&sort=-year&filter=year+%3E+1900"
	for next != "" {
		r := f.Do("GET", next, "").Want(200).HasHeader("Content-Type", "application/json").HasHeader("Cache-Control",
			"private, no-cache")
		var p page
		r.JSON(&p)
		for _, item := range p.Items {
			seen = append(seen, item.UUID)
		}
		if strings.Contains(r.Text, "secret") {
			t.Errorf("a private field in a list: %s", r.Text)
		}
		if next = linked(r, "next"); (p.Cursor == nil) != (next == "") {
			t.Fatalf("the link to %q does not go with %s", next, r.Text)
		}
	}
	if got := strings.Join(seen, " "); got != "b4 b3 b2 b1" {
		t.Errorf("listed %s", got)
	}
}

// TestListGoesBack: a page has the cursor of the page before, and a Link to it.
func TestListGoesBack(t *testing.T) {
	f := apitest.Start(t)
	for i := range 5 {
		f.Do("POST", "/books", fmt.Sprintf(`{"uuid":"b%d","year":%d}`, i, 1900+i)).Want(201)
	}
	read := func(path string) (uuids, next, prev string) {
		r := f.Do("GET", path, "").Want(200)
		var p struct {
			Items          []struct{ UUID string }
			Cursor, Before string
		}
		r.JSON(&p)
		for _, item := range p.Items {
			uuids += item.UUID
		}
		next, prev = linked(r, "next"), linked(r, "prev")
		if (next != "") != (p.Cursor != "") || (prev != "") != (p.Before != "") {
			t.Errorf("the links of %s are those to %q and %q", r.Text, next, prev)
		}
		return uuids, next, prev
	}
	first, second, none := read("/books?sort=-year&limit=2")
	if first != "b4b3" || none != "" {
		t.Fatalf("first %s, before it %q", first, none)
	}
	middle, third, _ := read(second)
	last, end, back := read(third)
	if middle != "b2b1" || last != "b0" || end != "" {
		t.Fatalf("then %s, %s, %q", middle, last, end)
	}
	f.Do("DELETE", "/books/b2", "").Want(204) // which begins the page before
	f.Do("POST", "/books", `{"uuid":"b9","year":1902}`).Want(201)
	middle, _, back = read(back)
	if middle != "b9b1" {
		t.Errorf("back at %s", middle)
	}
	first, _, none = read(back)
	if first != "b4b3" || none != "" {
		t.Errorf("back at %s, before it %q", first, none)
	}
}

func TestListFields(t *testing.T) {
	f := apitest.Start(t)
	f.Do("POST", "/books",
		`{"uuid":"emma","title":"Emma","year":1815,"secret":1,"by":{"name":"Jane","born":1775}}`).Want(201)
	if r := f.Do("GET", "/books?fields=title,by.name,secret,none",
		"").Want(200); r.Text != `{"items":[{"uuid":"emma","by":{"name":"Jane"},"title":"Emma"}]}` {
		t.Errorf("%s", r.Text)
	}
}

func TestListCounts(t *testing.T) {
	f := apitest.Start(t)
	for i := range 5 {
		f.Do("POST", "/books", fmt.Sprintf(`{"uuid":"b%d","year":%d}`, i, 1900+i)).Want(201)
	}
	if r := f.Do("GET", "/books?filter=year+%3E+1901&limit=1&fields=uuid&count=exact",
		"").Want(200); !strings.Contains(r.Text, `"count":{"value":3,"accuracy":"exact"}`) {
		t.Errorf("%s", r.Text)
	}
	if r := f.Do("GET", "/books?count=estimate", "").Want(200); !strings.Contains(r.Text,
		`"count":{"value":5,"accuracy":"estimate"}`) {
		t.Errorf("%s", r.Text)
	}
}

func TestPlansAreForAdmins(t *testing.T) {
	f := apitest.Start(t)
	f.Do("GET", "/books?explain=false", "").Want(200)
	f.Do("GET", "/books?explain=true", "").Want(401).Says("admins")
	f = apitest.Start(t,
		func(o *api.Options) { o.Admin = func(context.Context, *sessions.Session) bool { return true } })
	r := f.Do("GET", "/books?explain=true&sort=year", "").Want(200)
	if !strings.Contains(r.Text,
		`"plan":{"reads":[{"index":["year"]}],"order":["year","uuid"],"read":0,"bytes":0,"returned":0}`) {
		t.Errorf("%s", r.Text)
	}
	f = apitest.StartLogin(t, 1)[0]
	bearer := "Bearer " + f.Register("ada@example.com", "a fine password")
	f.Do("GET", "/books?explain=true", "", "Authorization", bearer).Want(403).Says("is for admins")
	var key struct{ Token string }
	f.Do("POST", "/auth/keys", `{"name":"k","password":"a fine password"}`, "Authorization",
		bearer).Want(201).JSON(&key)
	f.Do("GET", "/books?explain=true", "", "Authorization",
		"Bearer "+key.Token).Want(403).Says("an API key is not enough")
}

func TestListEmpty(t *testing.T) {
	f := apitest.Start(t)
	if r := f.Do("GET", "/books", "").Want(200); r.Text != `{"items":[]}` {
		t.Errorf("%s", r.Text)
	}
	f.Do("HEAD", "/books", "").Want(200).HasHeader("Content-Length", "12")
}

func TestListRefuses(t *testing.T) {
	f := apitest.Start(t)
	for query, says := range map[string]string{
		"limit=0":               "limit",
		"limit=501":             "limit",
		"limit=-1":              "limit",
		"limit=x":               "limit",
		"limit=":                "limit",
		"limit=1&limit=2":       "more than once",
		"filter=&filter=":       "more than once",
		"page=2":                "unknown",
		"Limit=2":               "unknown",
		"=1":                    "unknown",
		"cursor=x":              "cursor",
		"before=x":              "cursor",
		"before=x&cursor=x":     "one of both",
		"fields=a.b.c":          "one level",
		"fields=a,":             "fields",
		"count=all":             "count",
		"count=":                "count",
		"explain=1":             "explain",
		"sort=title":            "index",
		"filter=title+%3D%3D+1": "index",
		"filter=%zz":            "percent",
		"filter=a;b":            "percent",
	} {
		f.Do("GET", "/books?"+query, "").Want(400).Says(says)
	}
}
