package run

import (
	"context"
	"testing"

	"belfry/test/kit"
)

// End ends a run, stops belfry, and verifies what is left. It logs the report, under a name.
func (r *Run) End(t testing.TB, name string, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), kit.Limit)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := r.Verify(ctx); err != nil {
		t.Error(err)
	}
	report := r.Report()
	t.Logf("%s\n%s", name, report.Text())
	if report.Broken() > 0 {
		t.Error("belfry verify after the end found differences")
	}
}
