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

// Sizes of charts, in units of their drawing.
const (
	sparkWidth, sparkHeight = 120, 28
	historyWidth, historyHeight = 640, 180
	historySpan               = time.Hour
)

// lineChart is a chart of a value over the last hour, drawn by the template "lines".
type lineChart struct {
	Title         string
	Width, Height int
	Points        string // of the line; "" when there is nothing to draw
	Area          string // below it
	Max           string // the highest value
	Summary       string // in words, for who does not see the line
}

func lagChart(title string, history []Sample, width, height int) lineChart {
	return newLineChart(title, history, width, height, func(s Sample) uint64 { return s.Lag })
}

func flightChart(title string, history []Sample, width, height int) lineChart {
	return newLineChart(title, history, width, height, func(s Sample) uint64 { return s.Unacked })
}

// newLineChart draws values at their times. A line needs two of them.
func newLineChart(title string, history []Sample, width, height int, value func(Sample) uint64) lineChart {
	c := lineChart{Title: title, Width: width, Height: height}
	if len(history) == 0 {
		c.Summary = title + ": not measured yet"
		return c
	}
	last := history[len(history)-1]
	top := uint64(0)
	for _, s := range history {
		top = max(top, value(s))
	}
	c.Max = formatCount(int64(min(top, 1<<62)))
	c.Summary = fmt.Sprintf("%s: %s now, at most %s in the last hour", title, formatCount(int64(min(value(last), 1<<62))), c.Max)
	if len(history) < 2 {
		return c
	}
	const margin = 2
	var line strings.Builder
	first := 0.0
	for i, s := range history {
		x := float64(width) * (1 - float64(last.At.Sub(s.At))/float64(historySpan))
		y := float64(height-margin) - float64(height-2*margin)*float64(value(s))/float64(max(top, 1))
		if i == 0 {
			first = x
		} else {
			line.WriteByte(' ')
		}
		fmt.Fprintf(&line, "%.1f,%.1f", x, y)
	}
	c.Points = line.String()
	c.Area = fmt.Sprintf("%.1f,%d %s %d,%d", first, height, c.Points, width, height)
	return c
}
