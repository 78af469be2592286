package format

import (
	"slices"
	"unicode"
)

// Decisions of RFC 5892, section 2.6, for single characters.
var (
	alwaysValid = []rune{0x00DF, 0x03C2, 0x06FD, 0x06FE, 0x0F0B, 0x3007}
	neverValid  = []rune{0x0640, 0x07FA, 0x302E, 0x302F, 0x3031, 0x3032, 0x3033, 0x3034, 0x3035, 0x303B}
)

// never are the ranges that RFC 5892 excludes although they are letters or marks: symbols and music (2.4), old jamo of
// Hangul (2.9).
var never = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x11FF, Stride: 1}, {Lo: 0x20D0, Hi: 0x20FF, Stride: 1}, {Lo: 0xA960, Hi: 0xA97F, Stride: 1},
		{Lo: 0xD7B0, Hi: 0xD7FF, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x1D100, Hi: 0x1D1FF, Stride: 1}, {Lo: 0x1D200, Hi: 0x1D24F, Stride: 1}},
}

// The characters with rules of their own, RFC 5892, appendix A.
const (
	middleDot         = '\u00B7'
	keraia            = '\u0375'
	geresh            = '\u05F3'
	gershayim         = '\u05F4'
	katakanaMiddleDot = '\u30FB'
	nonJoiner         = '\u200C'
	joiner            = '\u200D'
)

func isArabicDigit(r rune) bool         { return r >= 0x0660 && r <= 0x0669 }
func isExtendedArabicDigit(r rune) bool { return r >= 0x06F0 && r <= 0x06F9 }

// isProtocolValid is PVALID of RFC 5892, for characters that package idna leaves as they are.
func isProtocolValid(r rune) bool {
	switch {
	case r == '-', slices.Contains(alwaysValid, r):
		return true
	case slices.Contains(neverValid, r), isArabicDigit(r), isExtendedArabicDigit(r), r == katakanaMiddleDot,
		unicode.Is(never, r):
		return false
	default:
		return unicode.In(r, unicode.Lu, unicode.Ll, unicode.Lo, unicode.Lm, unicode.Nd, unicode.Mn, unicode.Mc)
	}
}

// isValidInContext reports whether a character is valid where it is in the label. The joiners were checked by package
// idna.
func isValidInContext(label []rune, i int) bool {
	before, after := rune(-1), rune(-1)
	if i > 0 {
		before = label[i-1]
	}
	if i+1 < len(label) {
		after = label[i+1]
	}
	switch r := label[i]; {
	case r == joiner, r == nonJoiner:
		return true
	case r == middleDot:
		return before == 'l' && after == 'l'
	case r == keraia:
		return unicode.Is(unicode.Greek, after)
	case r == geresh, r == gershayim:
		return unicode.Is(unicode.Hebrew, before)
	case r == katakanaMiddleDot:
		return slices.ContainsFunc(label, func(r rune) bool {
			return r != katakanaMiddleDot && unicode.In(r, unicode.Hiragana, unicode.Katakana, unicode.Han)
		})
	case isArabicDigit(r):
		return !slices.ContainsFunc(label, isExtendedArabicDigit)
	case isExtendedArabicDigit(r):
		return !slices.ContainsFunc(label, isArabicDigit)
	default:
		return false
	}
}
