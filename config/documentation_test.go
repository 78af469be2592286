package config

import (
	"os"
	"regexp"
	"testing"
)

// People copy the example of the documentation.
func TestDocumentedExampleLoads(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("the page has no example")
	}
	c := mustParse(t, string(example[1]))
	equal(t, "stores", names(c.Stores), []string{"Authors", "Books", "Contents", "Idents", "LogPositions", "Requests", "SealKeys", "Sessions", "Tokens", "UploadQuotas", "Users"})
}
