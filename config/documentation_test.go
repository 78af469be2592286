package config

import (
	"os"
	"regexp"
	"testing"
)

// People copy the example of the documentation.
func TestDocumentedExampleLoads(t *testing.T) {
	c, err := Parse("testdata/belfry.yaml", documentedExample(t), environment) // beside which is a schema of recipes
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "stores",
		names(c.Stores), []string{"Comments", "Contents", "Idents", "LogPositions", "Recipes", "Requests", "SealKeys",
			"Sessions", "Tokens", "UploadQuotas", "Users"})
}

// documentedExample returns the complete example of the documentation.
func documentedExample(t *testing.T) []byte {
	t.Helper()
	page, err := os.ReadFile("../docs/guides/configure.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(listen:.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("the page has no example")
	}
	return example[1]
}
