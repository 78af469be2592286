package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"belfry/test/chaos/check"
)

// Report is what a run did and found.
type Report struct {
	Seed      uint64         `json:"seed"`
	Rounds    int            `json:"rounds"`
	Faults    map[string]int `json:"faults"` // injections by name
	Kills     int            `json:"kills"`
	PowerCuts int            `json:"powerCuts"`

	Acknowledged int `json:"acknowledged"` // writes
	Unknown      int `json:"unknown"`      // writes without a reply
	Refused      int `json:"refused"`      // writes
	Reads        int `json:"reads"`
	Accounts     int `json:"accounts"` // addresses that were registered

	Losses    int `json:"losses"`    // of the log that were reported and repaired
	Confirmed int `json:"confirmed"` // of these, reported for the listener of the run too

	Checks     int `json:"checks"`
	Events     int `json:"events"`     // of the log, each once
	Repeated   int `json:"repeated"`   // events that came again
	Reordered  int `json:"reordered"`  // events after one of a later revision, where that is allowed
	Objects    int `json:"objects"`    // compared at the checks
	Entries    int `json:"entries"`    // copies in arrays that were compared
	Copies     int `json:"copies"`     // of referenced objects that were compared
	Aggregates int `json:"aggregates"` // that were compared
	Overflows  int `json:"overflows"`  // arrays at their limit
	Cascaded   int `json:"cascaded"`   // objects that were deleted with their target
	Cleared    int `json:"cleared"`    // references that were cleared, since their object was deleted
	Restricted int `json:"restricted"` // deletions that were refused, since objects name the object
	Named      int `json:"named"`      // writes that were refused, since they name a deleted object, or one being deleted
	Undone     int `json:"undone"`     // of these, those that had been made before
	Late       int `json:"late"`       // checks that had to be repeated, since copies were not right at once

	Kinds      map[check.Kind]int `json:"kinds"` // violations
	Violations []string           `json:"violations"`
}

// kept is how many violations the report has with their text.
const kept = 100

func (r *Report) add(found *check.Report) {
	r.Checks++
	r.Events += found.Events
	r.Repeated += found.Repeated
	r.Reordered += found.Reordered
	r.Objects += found.Objects
	r.Entries += found.Entries
	r.Copies += found.Copies
	r.Aggregates += found.Aggregates
	r.Overflows += found.Overflows
	r.Cascaded += found.Cascaded
	r.Cleared += found.Cleared
	r.Restricted += found.Restricted
	r.Named += found.Named
	r.Undone += found.Undone
	r.violations(found)
}

func (r *Report) violations(found *check.Report) {
	for _, v := range found.Violations {
		r.Kinds[v.Kind]++
		if len(r.Violations) < kept {
			r.Violations = append(r.Violations, v.String())
		}
	}
}

// Report returns what the run did and found up to now.
func (r *Run) Report() Report {
	now, counts := r.report, r.history.Counts()
	now.Acknowledged, now.Unknown, now.Refused, now.Reads = counts.Acknowledged, counts.Unknown, counts.Refused,
		counts.Reads
	return now
}

// Broken is how many violations were found.
func (r Report) Broken() int {
	n := 0
	for _, count := range r.Kinds {
		n += count
	}
	return n
}

// Line is the report in one line.
func (r Report) Line() string {
	return fmt.Sprintf("%d rounds, %d kills, %d power cuts; %d writes acknowledged, %d unknown, %d refused, %d reads; "+
		"%d events, %d repeated; %d violations",
		r.Rounds, r.Kills, r.PowerCuts, r.Acknowledged, r.Unknown, r.Refused, r.Reads, r.Events, r.Repeated, r.Broken())
}

// JSON is the report for programs.
func (r Report) JSON() ([]byte, error) { return json.MarshalIndent(r, "", "  ") }

// Text is the report for people.
func (r Report) Text() string {
	var b strings.Builder
	row := func(what string, n any) { fmt.Fprintf(&b, "%-34s %v\n", what, n) }
	row("seed", r.Seed)
	row("rounds", r.Rounds)
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		row("  "+name, r.Faults[name])
	}
	row("kills", r.Kills)
	row("power cuts", r.PowerCuts)
	row("writes acknowledged", r.Acknowledged)
	row("writes without a reply", r.Unknown)
	row("writes refused", r.Refused)
	row("reads", r.Reads)
	row("addresses registered", r.Accounts)
	if r.Losses > 0 {
		row("losses of the log", r.Losses)
		row("  reported for a listener", r.Confirmed)
	}
	row("checks", r.Checks)
	row("events", r.Events)
	row("  that came again", r.Repeated)
	row("  after a later one", r.Reordered)
	row("objects compared", r.Objects)
	row("entries compared", r.Entries)
	row("  arrays at their limit", r.Overflows)
	row("copies of references compared", r.Copies)
	row("aggregates compared", r.Aggregates)
	row("objects deleted by cascades", r.Cascaded)
	row("references cleared", r.Cleared)
	row("deletions refused by references", r.Restricted)
	row("writes refused by deletions", r.Named)
	row("  that were made and taken back", r.Undone)
	row("checks that were repeated", r.Late)
	row("violations", r.Broken())
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		row("  "+string(kind), r.Kinds[kind])
	}
	for _, text := range r.Violations {
		fmt.Fprintln(&b, text)
	}
	return b.String()
}
