package contrast

import (
	"math"
	"testing"
)

func TestTheRatioIsThatOfWCAG(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{
		{"#000", "#ffffff", 21}, {"#fff", "#fff", 1}, {"#777777", "#fff", 4.48}, {"#767676", "#fff", 4.54},
		{"#ff0000", "#fff", 4.0}, {"#0000ff", "#FFFFFF", 8.59},
	} {
		a, err := Parse(c.a)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Parse(c.b)
		if err != nil {
			t.Fatal(err)
		}
		if got := Ratio(a, b); math.Abs(got-c.want) > 0.006 || got != Ratio(b, a) {
			t.Errorf("%s on %s: %.3f, want %.2f", c.a, c.b, got, c.want)
		}
	}
}

func TestColorsAreHexadecimalDigits(t *testing.T) {
	for _, bad := range []string{"", "#", "red", "1a5cb8", "#1a5cb", "#1a5cbg", "#1a5cb8ff", "#+a5cb8", "#-12", "# 12"} {
		if c, err := Parse(bad); err == nil {
			t.Errorf("%q is %s", bad, c)
		}
	}
	if c, err := Parse("#Fa0"); err != nil || c.String() != "#ffaa00" {
		t.Error(c, err)
	}
}

// Any color becomes readable on a light and on a dark background, and one that is readable stays.
func TestAColorIsMovedUntilItIsReadable(t *testing.T) {
	for _, c := range []Color{{0xff, 0xcc, 0}, {0x1a, 0x5c, 0xb8}, White, Black, {0x80, 0x80, 0x80}} {
		dark, light := c.Toward(Black, White), c.Toward(White, Color{0x1c, 0x1f, 0x24})
		if Ratio(dark, White) < Readable || Ratio(light, Color{0x1c, 0x1f, 0x24}) < Readable {
			t.Errorf("%s: %s, %s", c, dark, light)
		}
	}
	blue := Color{0x1a, 0x5c, 0xb8}
	if blue.Toward(Black, White) != blue || Better(blue, Black, White) != White || Better(White, Black, White) != Black {
		t.Error("a readable color has changed")
	}
}
