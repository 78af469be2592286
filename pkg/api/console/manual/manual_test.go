package manual_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"belfry/pkg/api/console/manual"
)

var (
	href   = regexp.MustCompile(`<a [^>]*href="([^"]*)"`)
	tags   = regexp.MustCompile(`<[^>]*>`)
	inline = regexp.MustCompile(`(?i)^<(script|style|img|iframe|form|object|embed)\b|\s(style|on[a-z]+)=|="javascript:`)
	id     = regexp.MustCompile(` id="([^"]*)"`)
)

// Each link of each page leads to a page of the site and to an anchor of it, or to another site.
func TestEveryLinkOfTheSiteResolves(t *testing.T) {
	const site = "https://belfry.example.org/console/docs/"
	pages, links := 0, 0
	for _, part := range manual.Contents() {
		for _, page := range part.Pages {
			pages++
			base, err := url.Parse(site + page.URL)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range href.FindAllStringSubmatch(string(page.HTML()), -1) {
				to, err := base.Parse(found[1])
				if err != nil {
					t.Errorf("%s: %v", page.URL, err)
					continue
				}
				within, ok := strings.CutPrefix(to.String(), site)
				if !ok {
					if to.Host == base.Host {
						t.Errorf("%s leads out of the site: %s", page.URL, found[1])
					}
					continue
				}
				links++
				target, anchor, _ := strings.Cut(within, "#")
				if anchor, err = url.PathUnescape(anchor); err != nil {
					t.Errorf("%s: %v", page.URL, err)
				}
				if p := manual.Find(target); p == nil || !p.Has(anchor) {
					t.Errorf("%s: the link %s is dead", page.URL, found[1])
				}
			}
		}
	}
	if pages < 50 || links < 500 {
		t.Errorf("%d pages with %d links were found", pages, links)
	}
}

// The pages are shown below a Content-Security-Policy that permits no style, no script and no picture of their own.
func TestPagesHaveWhatThePolicyPermits(t *testing.T) {
	for _, part := range manual.Contents() {
		for _, page := range part.Pages {
			html := string(page.HTML())
			for _, tag := range tags.FindAllString(html, -1) {
				if inline.MatchString(tag) {
					t.Errorf("%s has %s", page.URL, tag)
				}
			}
			seen := map[string]bool{}
			for _, found := range id.FindAllStringSubmatch(html, -1) {
				if seen[found[1]] {
					t.Errorf("%s has two anchors %s", page.URL, found[1])
				}
				seen[found[1]] = true
			}
			for _, h := range page.Headings {
				if !seen[h.Anchor] {
					t.Errorf("%s lacks the anchor %s", page.URL, h.Anchor)
				}
			}
		}
	}
}

func TestTheOrderOfPages(t *testing.T) {
	var before *manual.Page
	for _, part := range manual.Contents() {
		for _, page := range part.Pages {
			if got, _ := page.Around(); got != before {
				t.Errorf("%s comes after %v", page.URL, got)
			}
			if before != nil {
				if _, after := before.Around(); after != page {
					t.Errorf("%s comes before %v", before.URL, after)
				}
			}
			before = page
		}
	}
	if manual.Find("").Title == "" || manual.Find("none") != nil {
		t.Error("the start page has no title, or there is a page that was not written")
	}
}

// Each byte of the site is one of the program, whose size test/image bounds.
func TestTheSiteIsSmall(t *testing.T) {
	const most = 680_000 // bytes
	names, err := filepath.Glob("site/*.gz")
	if err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	if total > most || total == 0 {
		t.Errorf("the site has %d bytes, and may have %d", total, most)
	}
}

// searches are what BenchmarkSearch asks.
var searches = []string{
	"How do I let users log in with Google?", "row level security", "webhook when a document is created",
	"how to upload an image",
	"foreign key between two collections", "realtime subscribe to changes", "backup and restore", "my copy is late",
	"403 forbidden",
	"send magic link by email", "mfa totp", "deploy on kubernetes", "pagination", "full text search", "unique username",
	"maxObjectSize",
}

func TestHostileQueries(t *testing.T) {
	for _, q := range []string{"", " ", "?", "the", strings.Repeat("a ", 5000), strings.Repeat("é", 3000), "\xff\xfe",
		"<script>", strings.Repeat("log ", 100), "\x00", "ﷺ 😀"} {
		if hits := manual.Search(q); len(hits) > 12 {
			t.Errorf("%.20q finds %d sections", q, len(hits))
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	for b.Loop() {
		for _, q := range searches {
			manual.Search(q)
		}
	}
}
