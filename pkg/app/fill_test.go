package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"belfry/test/kit"
)

// A mapping is added to a configuration whose stores have objects: belfry fills the arrays by itself, says so, and what
// is written meanwhile is in them, too.
func TestAMappingThatIsAddedOverExistingDataIsFilled(t *testing.T) {
	p := newPlace(t, `
listen: 127.0.0.1:0
bus: {listen: ""}
metrics: {listen: '127.0.0.1:0'}
stores:
  Authors: {expose: {}}
  Books: {expose: {}}
`)
	a := p.start()
	for i := range 3 {
		p.want(a, "POST", "/authors", fmt.Sprintf(`{"uuid":"a%d"}`, i), http.StatusCreated)
		p.want(a, "POST", "/books", fmt.Sprintf(`{"uuid":"b%d","author":"a%d","title":"T"}`, i, i), http.StatusCreated)
	}
	p.stop(a)
	if strings.Contains(p.logged.String(), "fill") {
		t.Errorf("without a mapping: %s", p.logged)
	}

	p.config = p.load(`
listen: 127.0.0.1:0
bus: {listen: ""}
metrics: {listen: '127.0.0.1:0'}
stores:
  Authors: {expose: {}}
  Books: {expose: {}, map: {Authors: {key: author, target: books, fields: title}}}
`)
	a = p.start()
	p.want(a, "POST", "/books", `{"uuid":"later","author":"a0","title":"T"}`, http.StatusCreated)
	kit.WaitUntil(p, func() error {
		for _, s := range a.wiring.filling.Status() {
			if !s.Filled {
				return fmt.Errorf("%+v\n%s", s, p.logged)
			}
		}
		return nil
	})
	for i := range 3 {
		if _, author := p.do(a, "GET", fmt.Sprintf("/authors/a%d", i), ""); !strings.Contains(author,
			fmt.Sprintf(`{"uuid":"b%d","title":"T"}`, i)) {
			t.Errorf("not filled: %s", author)
		}
	}
	text := p.metrics(a)
	for _, line := range []string{`belfry_mapping_filled{array="books",source="Books",target="Authors"} 1`,
		"belfry_mapping_fill_targets_total 3"} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
	if f := a.console().Graph.Fill("Books", "Authors", "books"); f.Text() != "yes" || f.Targets != 3 {
		t.Errorf("the console says %+v", f)
	}
	for _, says := range []string{"filling its arrays from the objects", "the arrays of a mapping are filled"} {
		if !strings.Contains(p.logged.String(), says) {
			t.Errorf("the log lacks %q: %s", says, p.logged)
		}
	}
	kit.WaitUntil(p, func() error {
		if _, author := p.do(a, "GET", "/authors/a0", ""); !strings.Contains(author, "later") {
			return fmt.Errorf("%s", author)
		}
		return nil
	})
	p.stop(a)
	if n := p.differences(); n != 0 {
		t.Errorf("%d differences", n)
	}
	logged := len(p.logged.String())
	p.stop(p.start())
	if again := p.logged.String()[logged:]; strings.Contains(again, "fill") {
		t.Errorf("the next start fills again: %s", again)
	}
}
