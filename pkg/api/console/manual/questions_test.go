package manual_test

import (
	"html"
	"os"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/api/console/manual"
)

const (
	firstHits   = 3     // that a reader looks at
	firstScreen = 1_200 // characters of a page, or of a section and what follows
)

// People who use other backends find the answer to what they ask elsewhere: by a search in their own words, among its
// first hits, on the first screen of the page.
func TestTheSearchAnswersQuestionsOfPeers(t *testing.T) {
	file, err := os.ReadFile("testdata/questions.txt")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for line := range strings.Lines(string(file)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		asked++
		columns := strings.Split(strings.TrimSpace(line), " | ")
		if len(columns) != 4 {
			t.Errorf("%q has other columns", line)
			continue
		}
		question, page, answer := columns[0], columns[2], columns[3]
		hits := manual.Search(question)
		i := slices.IndexFunc(hits,
			func(h manual.Hit) bool { url, _, _ := strings.Cut(h.URL, "#"); return url == page })
		if i < 0 || i >= firstHits {
			var urls []string
			for _, h := range hits {
				urls = append(urls, h.URL)
			}
			t.Errorf("%q: %s is hit %d: %v", question, page, i+1, urls)
			continue
		}
		if screen := screenOf(hits[i].URL); !strings.Contains(screen, answer) {
			t.Errorf("%q: the first screen of %s does not have %q:\n%s", question, hits[i].URL, answer, screen)
		}
	}
	if asked != 30 {
		t.Errorf("%d questions were asked", asked)
	}
}

// screenOf is what a reader sees first who follows a link.
func screenOf(url string) string {
	url, anchor, _ := strings.Cut(url, "#")
	fragment := string(manual.Find(url).HTML())
	if _, after, ok := strings.Cut(fragment, ` id="`+anchor+`"`); ok && anchor != "" {
		_, fragment, _ = strings.Cut(after, ">")
	}
	text := strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(fragment, " "))), " ")
	if len(text) > firstScreen {
		text = strings.ToValidUTF8(text[:firstScreen], "")
	}
	return text
}
