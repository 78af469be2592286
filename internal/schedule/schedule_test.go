package schedule_test

import (
	"testing"
	"time"

	"belfry/internal/schedule"
)

func TestNext(t *testing.T) {
	at := func(text string) time.Time {
		t.Helper()
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for _, c := range []struct{ cron, after, want string }{
		{"0 3 * * *", "2026-11-23T02:59:59Z", "2026-11-23T03:00:00Z"},
		{"0 3 * * *", "2026-11-23T03:00:00Z", "2026-11-24T03:00:00Z"},
		{"*/15 * * * *", "2026-11-23T23:50:01Z", "2026-11-24T00:00:00Z"},
		{"0 0 1 * *", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"30 4 * * 0", "2026-11-23T00:00:00Z", "2026-11-29T04:30:00Z"},
		{"0 0 29 2 *", "2026-11-23T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"@daily", "2026-11-23T12:00:00+05:00", "2026-11-24T00:00:00+05:00"},
		{"@hourly", "2026-11-23T12:00:00Z", "2026-11-23T13:00:00Z"},
	} {
		s, err := schedule.Cron(c.cron)
		if err != nil {
			t.Fatalf("%s: %v", c.cron, err)
		}
		if got := s.Next(at(c.after)); !got.Equal(at(c.want)) {
			t.Errorf("%s after %s is %s, want %s", c.cron, c.after, got.Format(time.RFC3339), c.want)
		}
	}
	if got := schedule.Every(6 * time.Hour).Next(at("2026-11-23T06:00:00Z")); !got.Equal(at("2026-11-23T12:00:00Z")) {
		t.Errorf("every 6h after 06:00 is %s", got)
	}
	if got := (schedule.Schedule{}).Next(time.Now()); !got.IsZero() {
		t.Errorf("never is %s", got)
	}
}

func TestWhatIsNoScheduleIsRefused(t *testing.T) {
	for _, text := range []string{"", "daily", "0 3 * *", "* * * * * *", "0 25 * * *", "0 0 31 2 *", "@everysecond",
		"@5minutes", "61 * * * *"} {
		if _, err := schedule.Cron(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
