package console

import (
	"fmt"
	"strings"
	"time"
)

// Sample is the state of a listener at a time.
type Sample struct {
	At           time.Time
	Lag, Unacked uint64
}

// The size of a line in a table, in the units of its viewBox.
const sparkWidth, sparkHeight = 120, 28

// spark is a small line of a value over the last hour, or the part of it that has values, drawn by the template
// "lines".
type spark struct {
	Width, Height int
	Points        string // of the line; "" when there is nothing to draw
	Area          string // below it
	Max           string // the highest value
	Summary       string // in words, for readers who can't see the line
}

// lagLine draws the lag of a listener. A line needs two measurements.
func lagLine(title string, history []Sample) spark {
	c := spark{Width: sparkWidth, Height: sparkHeight}
	if len(history) == 0 {
		return c
	}
	last := history[len(history)-1]
	top := uint64(0)
	for _, s := range history {
		top = max(top, s.Lag)
	}
	number := func(n uint64) string { return formatCount(int64(min(n, 1<<62))) } //nolint:gosec // bounded
	c.Max = number(top)
	c.Summary = fmt.Sprintf("%s: %s now, at most %s in the last hour", title, number(last.Lag), c.Max)
	if len(history) < 2 {
		return c
	}
	const margin = 2
	span := spanOf(last.At.Sub(history[0].At))
	points := make([]string, len(history))
	for i, s := range history {
		x := sparkWidth * (1 - float64(last.At.Sub(s.At))/float64(span))
		y := sparkHeight - margin - (sparkHeight-2*margin)*float64(s.Lag)/float64(max(top, 1))
		points[i] = fmt.Sprintf("%.1f,%.1f", x, y)
	}
	c.Points = strings.Join(points, " ")
	first, _, _ := strings.Cut(points[0], ",")
	c.Area = fmt.Sprintf("%s,%d %s %d,%d", first, sparkHeight, c.Points, sparkWidth, sparkHeight)
	return c
}
