package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// maxGrowth is how many times its bytes a text counts for once it is normalized, if it has more than maxSmall: ordinary
// texts grow by little, but a ligature has up to eighteen letters.
const (
	maxGrowth = 4
	maxSmall  = 1 << 10
)

// normalize returns a text in the form in which it is divided into words: composed, with compatible characters such as
// full-width letters and ligatures as ordinary ones, one kind of apostrophe, and without characters that are not seen.
func normalize(text string) string {
	if isASCII(text) && !strings.Contains(text, "`") {
		return text
	}
	// Before compatible characters are replaced, as that makes a space of some apostrophes.
	normal := norm.NFKC.String(strings.Map(func(r rune) rune {
		switch {
		case isApostrophe(r):
			return '\''
		case unseen(r):
			return -1
		}
		return r
	}, text))
	if most := maxGrowth * max(len(text), maxSmall); len(normal) > most {
		normal = strings.ToValidUTF8(normal[:most], "")
	}
	if strings.Contains(normal, "ʼ") || strings.Contains(normal, "′") { // those of ŉ and ″
		normal = strings.NewReplacer("ʼ", "'", "′", "'").Replace(normal)
	}
	return normal
}

// isApostrophe reports whether a character is written for an apostrophe.
func isApostrophe(r rune) bool {
	return (r >= utf8.RuneSelf || r == '`') && strings.ContainsRune("`´‘’‛ʹʻʼ′՚׳ߴߵꞌ＇｀", r)
}

// unseen reports whether a character has no width, and separates no words: a soft hyphen, a joiner, a mark of
// direction, a selector of variants. A space without width does separate words, in scripts that have no other.
func unseen(r rune) bool {
	switch {
	case r < 0xad, r == 0x200b, 0xfff9 <= r && r <= 0xfffb:
		return false
	case 0x600 <= r && r <= 0x605, r == 0x6dd, r == 0x70f, r == 0x890, r == 0x891, r == 0x8e2, r == 0x110bd,
		r == 0x110cd:
		return false // marks before numbers, which are seen
	}
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

var foldCase = cases.Fold() // stateless

// foldCase returns a word in which the case of letters makes no difference, by all rules of Unicode: ß is ss, and ς is
// σ.
func (l *language) foldCase(word string) string {
	if l.dotless {
		word = strings.Map(func(r rune) rune {
			switch r {
			case 'I':
				return 'ı'
			case 'İ':
				return 'i'
			}
			return r
		}, word)
	}
	if isASCII(word) {
		return strings.ToLower(word)
	}
	word = norm.NFC.String(foldCase.String(word))
	if l.letters != nil {
		word = l.letters.Replace(word)
	}
	return word
}

// foldAccents returns a word, whose case is folded, without accents, points and other marks, but for letters that are
// of the alphabet of the language.
func (l *language) foldAccents(word string) string {
	if isASCII(word) {
		return word
	}
	var b strings.Builder
	marked := false // marks of the last letter are not kept
	for _, r := range norm.NFC.String(word) {
		switch {
		case r < utf8.RuneSelf:
			marked = true
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r) && marked:
		case strings.ContainsRune(l.alphabet, r):
			marked = true
			b.WriteRune(r)
		case unicode.Is(unicode.Nd, r):
			marked = false
			b.WriteRune(digitOf(r))
		default:
			var to string
			to, marked = foldLetter(r)
			b.WriteString(to)
		}
	}
	return b.String()
}

// foldLetter returns a letter without marks, and whether marks after it are not kept either: these are of the scripts
// in which words are also written without. In others, as those of India, they are vowels, or another sound, as in
// Japanese.
func foldLetter(r rune) (to string, marked bool) {
	if to, ok := otherLetters[r]; ok {
		return to, true
	}
	switch {
	case unicode.In(r, unicode.Latin, unicode.Greek, unicode.Arabic, unicode.Hebrew):
		base, _ := utf8.DecodeRuneInString(norm.NFD.String(string(r)))
		if to, ok := otherLetters[base]; ok {
			return to, true
		}
		return string(base), true
	case unicode.Is(unicode.Cyrillic, r):
		return string(r), true // й and ї are letters of their own
	}
	return string(r), false
}

// otherLetters are those that have no mark in Unicode, and are written without it, and those of Cyrillic alphabets that
// are.
var otherLetters = map[rune]string{
	'æ': "ae", 'œ': "oe", 'ø': "o", 'đ': "d", 'ð': "d", 'ħ': "h", 'ı': "i", 'ł': "l", 'ŧ': "t", 'þ': "th", 'ŋ': "n",
	'ƒ': "f", 'ɨ': "i", 'ȷ': "j", 'ʉ': "u", 'ё': "е", 'ѐ': "е", 'ѝ': "и",
	'ـ': "", 'ٱ': "ا", 'ى': "ي", 'ی': "ي", 'ک': "ك", 'ة': "ه", 'ہ': "ه", 'ە': "ه",
}

// digitOf returns a decimal digit of any script as one of ASCII.
func digitOf(r rune) rune {
	for _, of := range unicode.Nd.R16 {
		if lo := rune(of.Lo); lo <= r && r <= rune(of.Hi) {
			return '0' + (r-lo)%10
		}
	}
	for _, of := range unicode.Nd.R32 {
		if lo := rune(of.Lo); lo <= r && r <= rune(of.Hi) { //nolint:gosec // runes
			return '0' + (r-lo)%10
		}
	}
	return r
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// cutTo returns the first characters of a text.
func cutTo(text string, characters int) string {
	if len(text) <= characters {
		return text
	}
	for i := range text {
		if characters--; characters < 0 {
			return text[:i]
		}
	}
	return text
}
