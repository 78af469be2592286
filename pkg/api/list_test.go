package api_test

import (
	"fmt"
	"strings"
	"testing"
)

type page struct {
	Items []struct {
		UUID string
		Year int
	}
	Cursor *string
}

func TestListPages(t *testing.T) {
	f := start(t)
	for i := range 5 {
		f.do("POST", "/books", fmt.Sprintf(`{"uuid":"b%d","year":%d,"secret":1}`, i, 1900+i)).want(201)
	}
	var seen []string
	next := "/books?limit=2&sort=-year&filter=year+%3E+1900"
	for next != "" {
		r := f.do("GET", next, "").want(200).header("Content-Type", "application/json").header("Cache-Control", "private, no-cache")
		var p page
		r.json(&p)
		for _, item := range p.Items {
			seen = append(seen, item.UUID)
		}
		if strings.Contains(r.body, "secret") {
			t.Errorf("a private field in a list: %s", r.body)
		}
		link := r.Header.Get("Link")
		if (p.Cursor == nil) != (link == "") {
			t.Fatalf("Link %q does not go with %s", link, r.body)
		}
		next = strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
	}
	if got := strings.Join(seen, " "); got != "b4 b3 b2 b1" {
		t.Errorf("listed %s", got)
	}
}

func TestListEmpty(t *testing.T) {
	f := start(t)
	if r := f.do("GET", "/books", "").want(200); r.body != `{"items":[]}` {
		t.Errorf("%s", r.body)
	}
	f.do("HEAD", "/books", "").want(200).header("Content-Length", "12")
}

func TestListRefuses(t *testing.T) {
	f := start(t)
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
		f.do("GET", "/books?"+query, "").want(400).says(says)
	}
}
