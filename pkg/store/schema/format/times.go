package format

import (
	"regexp"
	"strconv"
	"time"
)

// timeForm is full-time of RFC 3339: hour, minute, second, and the offset's sign, hour and minute.
var timeForm = regexp.MustCompile(
	`^([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:\.[0-9]+)?(?:[Zz]|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))$`)

// durationForm is duration of RFC 3339, appendix A. As in every ABNF, letters are of either case.
var durationForm = regexp.MustCompile(`^[Pp](?:[0-9]+[Ww]|` + durationTime + `|` + durationDate + `(?:` + durationTime +
	`)?)$`)

const (
	durationDate = `(?:[0-9]+[Yy](?:[0-9]+[Mm](?:[0-9]+[Dd])?)?|[0-9]+[Mm](?:[0-9]+[Dd])?|[0-9]+[Dd])`
	durationTime = `[Tt](?:[0-9]+[Hh](?:[0-9]+[Mm](?:[0-9]+[Ss])?)?|[0-9]+[Mm](?:[0-9]+[Ss])?|[0-9]+[Ss])`
)

const (
	minutesOfDay = 24 * 60
	lastMinute   = minutesOfDay - 1 // UTC: the one in which a leap second may be inserted
)

func isDate(s string) bool {
	_, ok := parseDate(s)
	return ok
}

func parseDate(s string) (time.Time, bool) {
	if len(s) != len(time.DateOnly) {
		return time.Time{}, false
	}
	day, err := time.Parse(time.DateOnly, s)
	return day, err == nil
}

func isTime(s string) bool {
	minute, leap, ok := parseTime(s)
	return ok && (!leap || (minute+minutesOfDay)%minutesOfDay == lastMinute)
}

// parseTime returns the minute in UTC, and whether the second can only be a leap second. It counts the minute from
// the start of the local day, so it may be negative, or on the next day.
func parseTime(s string) (minute int, leap, ok bool) {
	m := timeForm.FindStringSubmatch(s)
	if m == nil {
		return 0, false, false
	}
	minute = minutes(m[1], m[2])
	switch m[4] {
	case "+":
		minute -= minutes(m[5], m[6])
	case "-":
		minute += minutes(m[5], m[6])
	}
	return minute, m[3] == "60", true
}

func minutes(hour, minute string) int {
	h, _ := strconv.Atoi(hour)
	m, _ := strconv.Atoi(minute)
	return h*60 + m
}

// isDateTime wants a leap second at the end of a month in UTC, where all leap seconds are.
func isDateTime(s string) bool {
	const date = len(time.DateOnly)
	if len(s) <= date || s[date] != 'T' && s[date] != 't' {
		return false
	}
	day, ok := parseDate(s[:date])
	minute, leap, valid := parseTime(s[date+1:])
	if !ok || !valid || !leap {
		return ok && valid
	}
	next := day.Add(time.Duration(minute+1) * time.Minute)
	return next.Day() == 1 && next.Hour() == 0 && next.Minute() == 0
}
