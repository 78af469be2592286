package console

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Chart is a chart of the last hour, or of the part of it that has values.
type Chart struct {
	ID     string // unique on the page
	Title  string
	Unit   string // "ms", "requests a second"; "bytes" is shown with its prefixes
	Series []Series
}

// Series is a line of a chart.
type Series struct {
	Name   string
	Points []Point // in the order of their times
}

// Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64 // NaN: no value
}

// The size of a chart, in the units of its viewBox.
const (
	chartWidth  = 520
	chartHeight = 170
	chartLeft   = 68 // of the labels
	chartRight  = 8
	chartTop    = 10
	chartBottom = 24
	chartSpan   = time.Hour
)

// drawnChart is a chart as its template needs it.
type drawnChart struct {
	Chart
	Width, Height      int
	Left, Right        int
	Bottom             float64
	Grid               []gridLine
	Ticks              []tick
	Lines              []drawnLine
	Summary            string
	Empty              bool
	TitleID, SummaryID string
}

type gridLine struct {
	Y     string
	Text  string
	TextY string
}

type tick struct{ X, Text, Anchor string }

// drawnLine is a line with its summary, which is also a row of the table.
type drawnLine struct {
	Name, Class              string
	Segments                 []string // points of polylines: a gap ends one
	Dots                     []dot    // values without a neighbor
	Now, Least, Middle, Most string
}

type dot struct{ X, Y string }

// draw computes a chart up to a time.
func (c Chart) draw(now time.Time) drawnChart {
	d := drawnChart{
		Chart: c, Width: chartWidth, Height: chartHeight, Left: chartLeft, Right: chartWidth - chartRight,
		Bottom: chartHeight - chartBottom, TitleID: c.ID + "-title", SummaryID: c.ID + "-summary", Empty: true,
	}
	top, first := 0.0, now
	for _, s := range c.Series {
		if len(s.Points) > 0 && s.Points[0].At.Before(first) {
			first = s.Points[0].At
		}
		for _, p := range s.Points {
			if !math.IsNaN(p.Value) {
				top, d.Empty = max(top, p.Value), false
			}
		}
	}
	top = niceTop(top, c.Unit)
	span := spanOf(now.Sub(first))
	y := func(v float64) float64 {
		return chartTop + (1-v/top)*(chartHeight-chartTop-chartBottom)
	}
	x := func(at time.Time) float64 {
		return chartLeft + (1-float64(now.Sub(at))/float64(span))*(chartWidth-chartLeft-chartRight)
	}
	for _, v := range []float64{0, top / 2, top} {
		d.Grid = append(d.Grid, gridLine{Y: coordinate(y(v)), Text: c.format(v), TextY: coordinate(y(v) + 4)})
	}
	for i, anchor := range []string{"start", "middle", "middle", "end"} {
		at := now.Add(-span * time.Duration(3-i) / 3)
		d.Ticks = append(d.Ticks, tick{X: coordinate(x(at)), Text: at.UTC().Format("15:04"), Anchor: anchor})
	}
	var said []string
	for i, s := range c.Series {
		line := c.line(s, now, x, y)
		line.Class = "line line-" + strconv.Itoa(i+1)
		d.Lines = append(d.Lines, line)
		said = append(said, fmt.Sprintf("%s: now %s, at least %s, median %s, at most %s", line.Name, line.Now,
			line.Least, line.Middle, line.Most))
	}
	d.Summary = "The last hour. " + strings.Join(said, "; ") + "."
	if d.Empty {
		d.Summary = "No values yet."
	}
	return d
}

// spans are the times that a chart shows. A third of each is whole minutes.
var spans = [...]time.Duration{3 * time.Minute, 6 * time.Minute, 15 * time.Minute, 30 * time.Minute, chartSpan}

// spanOf returns the shortest span that has values of an age, so that the values of a process that started a moment ago
// do not share the last tenth of a chart.
func spanOf(age time.Duration) time.Duration {
	for _, span := range spans {
		if age <= span {
			return span
		}
	}
	return chartSpan
}

// line draws one series.
func (c Chart) line(s Series, now time.Time, x func(time.Time) float64, y func(float64) float64) drawnLine {
	line := drawnLine{Name: s.Name, Now: "–", Least: "–", Middle: "–", Most: "–"}
	var segment []Point
	var values []float64
	end := func() {
		switch {
		case len(segment) == 1:
			line.Dots = append(line.Dots, dot{coordinate(x(segment[0].At)), coordinate(y(segment[0].Value))})
		case len(segment) > 1:
			var b strings.Builder
			for _, p := range segment {
				b.WriteString(coordinate(x(p.At)) + "," + coordinate(y(p.Value)) + " ")
			}
			line.Segments = append(line.Segments, strings.TrimSpace(b.String()))
		}
		segment = segment[:0]
	}
	for _, p := range s.Points {
		if math.IsNaN(p.Value) || now.Sub(p.At) > chartSpan {
			end()
			continue
		}
		segment, values = append(segment, p), append(values, p.Value)
	}
	end()
	if len(values) == 0 {
		return line
	}
	line.Now = c.format(values[len(values)-1])
	least, middle, most := spread(values)
	line.Least, line.Middle, line.Most = c.format(least), c.format(middle), c.format(most)
	return line
}

// format returns a value with its unit, where that is short.
func (c Chart) format(v float64) string {
	switch c.Unit {
	case "bytes":
		return strings.Replace(formatBytes(int64(v)), ".0 ", " ", 1)
	case "ms":
		return number(v) + " ms"
	}
	return number(v)
}

// number returns a number with about three digits.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v >= 100:
		return formatCount(int64(math.Round(v)))
	case v >= 10:
		return trimmed(v, 1)
	default:
		return trimmed(v, 2)
	}
}

// trimmed returns a number with at most so many decimals, and without zeros at its end.
func trimmed(v float64, decimals int) string {
	return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v, 'f', decimals, 64), "0"), ".")
}

// niceTop returns the top of an axis for a greatest value.
func niceTop(v float64, unit string) float64 {
	if v <= 0 {
		return 1
	}
	base := 10.0
	if unit == "bytes" {
		base = 1024
	}
	step := math.Pow(base, math.Floor(math.Log(v)/math.Log(base)))
	for _, f := range []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		if v <= f*step {
			return f * step
		}
	}
	return base * step
}

func coordinate(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
