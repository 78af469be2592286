package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// The load of the searches whose time is not to tell of what they do not show.
const (
	hiddenNotes   = 100_000 // that nobody may list, each with a word of its own
	hiddenMatches = 1000    // of these
	shownNotes    = 100
	shownMatches  = 3
	hiddenRounds  = 1000

	hiddenGoal      = 2 * time.Millisecond
	hiddenGoalRatio = 0.05
)

const noteStores = serving + `  Notes:
    expose: {list: true}
    policy: {create: "true", get: object.public == true}
    search: {fields: [text]}
  Shared:
    expose: {list: true}
    policy: {create: "true", get: object.public == true}
    search: {fields: [text], statistics: shared}
`

// hiddenPairs are searches of which the second one has as many more matches, all of them hidden.
var hiddenPairs = []struct{ name, bare, hidden string }{
	{"a word that none of one's own has", "absent", "secret"},
	{"a word that some of one's own have", "plain", "common"},
	{"a beginning", "xa*", "xe*"},
	{"words that follow each other", `"plain text"`, `"common text"`},
	{"without a word", "note -absent", "note -secret"},
}

// notes returns what is shown, then what is hidden.
func notes() (lines [][]byte) {
	w := newWords(7)
	for i := range shownNotes {
		text := "note " + w.text(10)
		if i < shownMatches {
			text += " plain text common text"
		}
		lines = append(lines, fmt.Appendf(nil, `{"public":true,"text":%q}`, text))
	}
	for i := range hiddenNotes {
		text := fmt.Sprintf("%s u%06d", w.text(10), i)
		if i%(hiddenNotes/hiddenMatches) == 0 {
			text += fmt.Sprintf(" secret common text xe%06d", i)
		}
		lines = append(lines, fmt.Appendf(nil, `{"public":false,"text":%q}`, text))
	}
	return lines
}

// hiddenSearches measures in turn searches with and without matches that are hidden.
func (b *bench) hiddenSearches(ctx context.Context) (err error) {
	s, err := b.serveWith(ctx, noteStores)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	lines := notes()
	for _, of := range []string{"notes", "shared"} {
		for from := 0; from < len(lines); from += queryStream {
			to := min(from+queryStream, len(lines))
			if err := createLines(ctx, s.base+"/"+of, linesOf(from, to, func(i int) []byte { return lines[i] }),
				to-from); err != nil {
				return err
			}
		}
	}
	if err := searchable(s, "Notes", len(lines)); err != nil {
		return err
	}
	if err := searchable(s, "Shared", len(lines)); err != nil {
		return err
	}
	fmt.Printf("searches among %d notes that may be listed and %d that may not, of which %d match; medians of %d "+
		"in turn\n", shownNotes, hiddenNotes, hiddenMatches, hiddenRounds)
	for _, of := range []string{"notes", "shared"} {
		for _, pair := range hiddenPairs {
			medians, err := inTurn(s, "/"+of+"?q="+url.QueryEscape(pair.bare),
				"/"+of+"?q="+url.QueryEscape(pair.hidden))
			if err != nil {
				return err
			}
			bare, hidden := medians[0], medians[1]
			fmt.Printf("  %-38s without %v, with %v, %+.1f %%", pair.name, bare.Round(time.Microsecond),
				hidden.Round(time.Microsecond), 100*(float64(hidden)/float64(bare)-1))
			if of == "notes" {
				differ := (hidden - bare).Abs()
				fmt.Printf(" (goal %v and %.0f %%): %s", hiddenGoal, 100*hiddenGoalRatio,
					verdict(differ < hiddenGoal && float64(differ) < hiddenGoalRatio*float64(bare)))
			}
			fmt.Println()
		}
		if of == "notes" {
			fmt.Println("  the same with statistics: shared")
		}
	}
	return nil
}

// searchable waits until the index of a store has so many objects.
func searchable(s *server, store string, total int) error {
	has := fmt.Appendf(nil, "\nbelfry_search_objects{store=%q} %v\n", store, float64(total))
	var err error
	for range indexPatience {
		if err = pollUntil(s, metricsPath, func(body []byte) bool { return bytes.Contains(body, has) }); err == nil {
			return nil
		}
	}
	return err
}

// inTurn returns the medians of two requests that are sent in turn.
func inTurn(s *server, first, second string) (medians [2]time.Duration, err error) {
	c, err := dial(s.base)
	if err != nil {
		return medians, err
	}
	defer c.close()
	var took [2][]time.Duration
	for i := range 2 * hiddenRounds {
		began := time.Now()
		if err := expect(c, 200, "GET", []string{first, second}[i%2], nil); err != nil {
			return medians, err
		}
		took[i%2] = append(took[i%2], time.Since(began))
	}
	for i := range took {
		slices.Sort(took[i])
		medians[i] = percentile(took[i], 0.5)
	}
	return medians, nil
}
