package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/segment"
)

// maxMarked is from how many bytes on marks after a character that is alone do not count: no script has so many.
const maxMarked = 64

// piece is a text between spaces and punctuation.
type piece struct {
	written string // as in the text; the case of one that is alone is folded
	// the punctuation that joins it to the next one, as in first.last, or ends the text; "": it is joined to none
	next    string
	segment int  // by the rules of Unicode several pieces are one: those of l'avion, first.last, 1,000
	alone   bool // a character of a script that has no spaces between words
	touches bool // nothing is between it and the one before
}

// pieces divides a text that is normalized into words of which nothing else is known.
func (l *language) pieces(text string) []word {
	const size = 6 // of a word, in most texts
	d := division{language: l, all: make([]word, 0, 1+len(text)/size)}
	for text != "" {
		text = text[d.plain(text):]
		other := untilPlain(text)
		d.segments(text[:other])
		text = text[other:]
	}
	d.join()
	return d.all
}

// division divides a text into pieces, from its beginning to its end.
type division struct {
	*language
	all     []word
	joint   []byte // what has been read after the last piece
	segment int
}

// add adds a piece.
func (d *division) add(p piece) {
	if !p.alone {
		d.join()
	}
	p.segment, p.touches = d.segment, len(d.joint) == 0
	d.joint = d.joint[:0]
	d.all = append(d.all, word{piece: p})
}

// join joins the last piece to the next one, or to the end of the text, if what is between does.
func (d *division) join() {
	if last := len(d.all) - 1; last >= 0 && !d.all[last].alone && joins(d.joint) {
		d.all[last].next = strings.Map(dash, string(d.joint))
	}
}

// plain divides the beginning of a text, as far as it is plain: words of ASCII and what is between them, where Unicode
// divides all that has another kind. It returns how much that is. Most of most texts is, and the rules of Unicode take
// several times as long.
func (d *division) plain(text string) int {
	for i := 0; i < len(text); {
		from := i
		for i < len(text) && isPlain(text[i]) {
			i++
		}
		switch {
		// It may be a mark.
		case i == from && (text[i] >= utf8.RuneSelf || text[i] == '_' || i+1 < len(text) && text[i+1] >= utf8.RuneSelf):
			return from
		case i == from:
			d.joint = append(d.joint, text[i])
			i++
		case i < len(text) && !endsPlain(text[i:]):
			return from
		default:
			d.add(piece{written: cutTo(text[from:i], maxWord)})
			d.segment++
		}
	}
	return len(text)
}

// endsPlain reports whether what follows a plain word begins with something that is never of one segment with it.
func endsPlain(rest string) bool {
	switch c := rest[0]; c {
	case '.', ',', ':', ';', '\'':
		return len(rest) == 1 || rest[1] == ' '
	default:
		return c < utf8.RuneSelf && c != '_'
	}
}

// untilPlain returns how much of a text is before a space with a plain word after it.
func untilPlain(text string) int {
	for i := 1; i+1 < len(text); i++ {
		if (text[i] == ' ' || text[i] == '\n') && isPlain(text[i+1]) {
			return i
		}
	}
	return len(text)
}

// isPlain reports whether a byte is a letter or a digit of ASCII.
func isPlain(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' || '0' <= b && b <= '9' }

// segments divides a text, or a part of one between segments, by the rules of Unicode.
func (d *division) segments(text string) {
	segments := segment.NewWordSegmenterDirect([]byte(text))
	for ; segments.Segment(); d.segment++ {
		var word strings.Builder
		end := func() {
			if word.Len() > 0 {
				d.add(piece{written: cutTo(word.String(), maxWord)})
				word.Reset()
			}
		}
		kind := segments.Type()
		for _, r := range string(segments.Bytes()) {
			switch isWord := unicode.IsLetter(r) || unicode.IsNumber(r); {
			case isWord && (kind == segment.Ideo || kind == segment.None || d.cjk && isCJK(r)):
				end()
				d.add(piece{written: d.foldCase(string(r)), alone: true})
			case isWord, unicode.IsMark(r) && word.Len() > 0:
				word.WriteRune(r)
			case unicode.IsMark(r) && len(d.joint) == 0 && len(d.all) > 0 && d.all[len(d.all)-1].alone:
				if last := &d.all[len(d.all)-1]; len(last.written) < maxMarked {
					last.written += string(r)
				}
			default:
				end()
				d.joint = utf8.AppendRune(d.joint, r)
			}
		}
		end()
	}
}

// isCJK reports whether words of the script of a letter are divided into its characters.
func isCJK(r rune) bool {
	return r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo)
}

// joins reports whether what is between two pieces joins them, as in an address, the name of a file, or a word with a
// hyphen.
func joins(between []byte) bool {
	const most = 3 // as in https://example.com
	if len(between) == 0 || utf8.RuneCount(between) > most {
		return false
	}
	for _, r := range string(between) {
		if (r <= ' ' || r > '~') && !unicode.Is(unicode.Pd, r) && r != '·' && r != '⁄' {
			return false
		}
	}
	return true
}

func dash(r rune) rune {
	if unicode.Is(unicode.Pd, r) {
		return '-'
	}
	return r
}
