package pages

import (
	"strings"
	"testing"
	"time"
)

// A loop that writes nothing is not ended by the bound of the output. This one ends by itself, so that the test leaves nothing behind for long.
func TestATemplateThatDoesNotEndIsRefused(t *testing.T) {
	loop, err := parse("{{template \"content\" .}}", loginPage, `{{define "content"}}{{range 200000}}{{end}}{{end}}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := try(loop, time.Millisecond); err == nil || !strings.Contains(err.Error(), "does a range in it end") {
		t.Error(err)
	}
	if err := try(loop, time.Minute); err != nil {
		t.Error(err)
	}
}

func TestATemplateThatIncludesItselfIsRefused(t *testing.T) {
	loop, err := parse("{{template \"content\" .}}", loginPage, `{{define "content"}}{{template "content" .}}{{template "content" .}}{{end}}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := try(loop, time.Minute); err == nil || !strings.Contains(err.Error(), "depth") {
		t.Error(err)
	}
}
