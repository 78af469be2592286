// Package contrast computes how well a text of one color can be read on another, as WCAG 2 defines it.
package contrast

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Readable is the least ratio of a text of normal size (WCAG 2, 1.4.3).
const Readable = 4.5

// Color is a color of the sRGB space.
type Color struct{ R, G, B uint8 }

// Colors of texts.
var (
	White = Color{0xff, 0xff, 0xff}
	Black = Color{}
)

// Parse parses a color in hexadecimal digits, such as #1a5cb8 or #fff.
func Parse(text string) (Color, error) {
	digits, ok := strings.CutPrefix(text, "#")
	if len(digits) == 3 {
		digits = string([]byte{digits[0], digits[0], digits[1], digits[1], digits[2], digits[2]})
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if !ok || len(digits) != 6 || err != nil {
		return Color{}, errors.New("expected a color such as #1a5cb8, in quotes")
	}
	return Color{uint8(n >> 16), uint8(n >> 8), uint8(n)}, nil //nolint:gosec // each is one byte of it
}

// String returns a color as Parse accepts it.
func (c Color) String() string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// Ratio returns the contrast of two colors, 1 to 21.
func Ratio(a, b Color) float64 {
	high, low := a.luminance(), b.luminance()
	if high < low {
		high, low = low, high
	}
	return (high + 0.05) / (low + 0.05)
}

func (c Color) luminance() float64 {
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

func linear(channel uint8) float64 {
	v := float64(channel) / 0xff
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

// Better returns the one of two texts that can be read better on a color.
func Better(on, one, other Color) Color {
	if Ratio(on, other) > Ratio(on, one) {
		return other
	}
	return one
}

// Toward returns the color nearest to c, on the way to another, that can be read on a background; the other if none
// can be.
func (c Color) Toward(other, background Color) Color {
	const steps = 100
	for i := range steps {
		mixed := c.mix(other, float64(i)/steps)
		if Ratio(mixed, background) >= Readable {
			return mixed
		}
	}
	return other
}

func (c Color) mix(other Color, part float64) Color {
	of := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + (float64(b)-float64(a))*part)) }
	return Color{of(c.R, other.R), of(c.G, other.G), of(c.B, other.B)}
}
