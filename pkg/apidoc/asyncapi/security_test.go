package asyncapi

import (
	"testing"

	"belfry/pkg/event"
)

func TestEveryEventAboutTheSecurityOfAccountsHasASummary(t *testing.T) {
	summaries := securitySummaries()
	for _, name := range event.Auth() {
		if summaries[name] == "" {
			t.Errorf("%s has no summary", name)
		}
	}
	if len(summaries) != len(event.Auth()) {
		t.Errorf("there are %d summaries of %d events", len(summaries), len(event.Auth()))
	}
}
