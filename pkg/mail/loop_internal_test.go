package mail

import (
	"errors"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
)

// A loop that writes nothing is not ended by the bound of a text.
func TestTextsThatDoNotEndAreRefused(t *testing.T) {
	t.Parallel()
	const endless = "{{range 1000000000000}}{{end}}x"
	for name, texts := range map[string][3]string{
		"subject": {endless, "", "t"}, "html": {"s", endless, ""}, "text": {"s", "", endless},
	} {
		_, err := parseWithin(time.Millisecond, texts[0], texts[1], texts[2])
		if !errors.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "does a range in it end?") {
			t.Errorf("%s: %v", name, err)
		}
	}
	mail, err := parseWithin(time.Hour, "{{range 3}}x{{end}}", "", "t")
	if err != nil {
		t.Fatal(err)
	}
	if subject, _, _, err := mail.Render(sample); err != nil || subject != "xxx" {
		t.Error(subject, err)
	}
}
