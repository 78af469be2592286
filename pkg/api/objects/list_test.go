package objects_test

import (
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
)

type page struct {
	Items []struct {
		UUID string
		Year int
	}
	Cursor *string
}

func TestListPages(t *testing.T) {
	f := apitest.Start(t)
	for i := range 5 {
		f.Do("POST", "/books", fmt.Sprintf(`{"uuid":"b%d","year":%d,"secret":1}`, i, 1900+i)).Want(201)
	}
	var seen []string
	next := "/books?limit=2&sort=-year&filter=year+%3E+1900"
	for next != "" {
		r := f.Do("GET", next, "").Want(200).HasHeader("Content-Type", "application/json").HasHeader("Cache-Control", "private, no-cache")
		var p page
		r.JSON(&p)
		for _, item := range p.Items {
			seen = append(seen, item.UUID)
		}
		if strings.Contains(r.Text, "secret") {
			t.Errorf("a private field in a list: %s", r.Text)
		}
		link := r.Header.Get("Link")
		if (p.Cursor == nil) != (link == "") {
			t.Fatalf("Link %q does not go with %s", link, r.Text)
		}
		next = strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
	}
	if got := strings.Join(seen, " "); got != "b4 b3 b2 b1" {
		t.Errorf("listed %s", got)
	}
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
		"sort=title":            "index",
		"filter=title+%3D%3D+1": "index",
		"filter=%zz":            "percent",
		"filter=a;b":            "percent",
	} {
		f.Do("GET", "/books?"+query, "").Want(400).Says(says)
	}
}
