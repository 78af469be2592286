package main

import (
	"bytes"
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	width  = 16 * vg.Centimeter
	height = 10 * vg.Centimeter
	margin = 4 * vg.Millimeter
)

// colors can be distinguished by people who see few (Okabe and Ito).
var colors = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
}

// draw returns a figure as SVG. Its background is its own, so that it is read on a dark page too.
func (f *figure) draw() ([]byte, error) {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.title, f.x, f.y
	p.Title.Padding, p.X.Padding = 3*vg.Millimeter, 3*vg.Millimeter
	p.Legend.Top, p.Legend.Left = true, true // the text is on the right, where another font may be wider
	p.Legend.Padding, p.Legend.ThumbnailWidth, p.Legend.XOffs = vg.Millimeter, vg.Centimeter, 4*vg.Millimeter
	p.Add(&plotter.Grid{Horizontal: plotter.DefaultGridLineStyle})
	if f.logarithmic {
		p.X.Scale = plot.LogScale{}
	}
	p.X.Tick.Marker = f.ticks()
	for _, s := range f.series {
		if err := s.addTo(p); err != nil {
			return nil, err
		}
	}
	p.Y.Min, p.Y.Max = 0, 1.4*p.Y.Max // above the lines there is space for the legend
	p.Y.Tick.Marker = labels{}
	canvas := vgsvg.New(width, height)
	whole := draw.New(canvas)
	whole.FillPolygon(color.White, []vg.Point{{}, {X: width}, {X: width, Y: height}, {Y: height}})
	p.Draw(draw.Crop(whole, margin, -2*margin, margin, -margin))
	var out bytes.Buffer
	_, err := canvas.WriteTo(&out)
	return bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), err
}

// ticks are where something was measured.
func (f *figure) ticks() plot.ConstantTicks {
	var at []float64
	for _, s := range f.series {
		for _, m := range s.at {
			at = append(at, m.x)
		}
	}
	slices.Sort(at)
	var ticks plot.ConstantTicks
	for _, x := range slices.Compact(at) {
		ticks = append(ticks, plot.Tick{Value: x, Label: thousands(int(math.Round(x)))})
	}
	return ticks
}

// labels are marks at round numbers.
type labels struct{}

func (labels) Ticks(least, most float64) (ticks []plot.Tick) {
	const about = 5
	step := math.Pow(10, math.Floor(math.Log10((most-least)/about)))
	for _, times := range []float64{2, 5, 10} {
		if (most-least)/step > about {
			step = times * math.Pow(10, math.Floor(math.Log10((most-least)/about)))
		}
	}
	for n := math.Ceil(least / step); n*step <= most; n++ {
		label := strconv.FormatFloat(n*step, 'g', 3, 64)
		if value := n * step; value == math.Trunc(value) {
			label = thousands(int(value))
		}
		ticks = append(ticks, plot.Tick{Value: n * step, Label: label})
	}
	return ticks
}

// measured is a series for error bars.
type measured []mark

func (m measured) Len() int                         { return len(m) }
func (m measured) XY(i int) (x, y float64)          { return m[i].x, m[i].y }
func (m measured) YError(i int) (low, high float64) { return m[i].y - m[i].least, m[i].most - m[i].y }

func (s *series) addTo(p *plot.Plot) error {
	line, marks, err := plotter.NewLinePoints(measured(s.at))
	if err != nil {
		return err
	}
	line.Color, line.Width = colors[s.color%len(colors)], vg.Points(1.5)
	if s.dashed {
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(line)
		p.Legend.Add(s.name, line)
		return nil
	}
	marks.Shape, marks.Color, marks.Radius = draw.CircleGlyph{}, line.Color, vg.Points(3)
	p.Add(line, marks)
	p.Legend.Add(s.name, line, marks)
	spread := slices.DeleteFunc(slices.Clone(s.at), func(m mark) bool { return m.most == 0 })
	if len(spread) == 0 {
		return nil
	}
	bars, err := plotter.NewYErrorBars(measured(spread))
	if err != nil {
		return err
	}
	bars.Color = line.Color
	p.Add(bars)
	return nil
}
