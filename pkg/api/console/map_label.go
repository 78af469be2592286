package console

import "strings"

// nameWidth is the most that the name of a store takes, in the font of the page.
func nameWidth(name string) (width float64) {
	for _, c := range name {
		switch {
		case c >= 0x1100:
			width += 16
		case strings.ContainsRune("MWmw@%", c):
			width += 14
		case c >= 'A' && c <= 'Z':
			width += 11
		default:
			width += 9
		}
	}
	return width
}

// monospaced is what a text of a label takes, in a font whose letters are of one width.
func monospaced(text string) (width float64) {
	for _, c := range text {
		width += monoWidth
		if c >= 0x1100 {
			width += monoWidth
		}
	}
	return width
}

// labelOf returns the label of an edge, without its place.
func labelOf(e mapEdge) edge {
	var made edge
	if e.Array != "" {
		made.Lines = append(made.Lines, labelLine{Text: e.Array})
	}
	for _, a := range e.Aggregates {
		made.Lines = append(made.Lines, labelLine{Text: a.Property + " = " + a.Function + "(" + a.Field + ")"})
	}
	made.Title = e.Source + " → " + e.Target + ": " + e.Label()
	switch {
	case len(made.Lines) == 0:
		made.Kind, made.Lines = "cascade", []labelLine{{Text: "cascade"}}
	case e.Array == "":
		made.Kind = "aggregate"
	}
	if e.Cascade && made.Kind != "cascade" {
		made.Lines[len(made.Lines)-1].Text += " ✕"
	}
	return made
}

// labelWidth has room for a warning before the text, and for the lag.
func (e edge) labelWidth() float64 {
	width := monospaced("lag 123,456,789")
	for _, l := range e.Lines {
		width = max(width, monospaced("⚠ "+l.Text))
	}
	return width
}
