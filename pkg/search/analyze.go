package search

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/segment"
)

const (
	// maxWord is the most characters of a word that count, as in Lucene. The time that some stemmers take grows with the square of it.
	maxWord = 255

	// maxJoined is how many characters of words that are joined, as in an address, count for the beginning of them all.
	maxJoined = 64

	// maxParts is from how many of the words that are joined on: else a text of single letters with dots would have a hundred times as much.
	maxParts = 8

	// maxBeginning is how many of a beginning count where an index has beginnings.
	maxBeginning = 24
)

// piece is what is between spaces and punctuation.
type piece struct {
	text    string // its case is folded
	next    string // the punctuation that joins it to the next one, as in first.last, or ends the text; "": it is joined to none
	segment int    // by the rules of Unicode several pieces are one: those of l'avion, first.last, 1,000
	alone   bool   // a character of a script that has no spaces between words
	touches bool   // nothing is between it and the one before
}

// pieces divides a text that is normalized.
func (l *language) pieces(text string) (all []piece) {
	var joint []byte // what has been read after the last piece
	join := func() {
		if last := len(all) - 1; last >= 0 && !all[last].alone && joins(joint) {
			all[last].next = strings.Map(dash, string(joint))
		}
	}
	add := func(p piece) {
		if !p.alone {
			join()
		}
		p.touches, joint = len(joint) == 0, joint[:0]
		all = append(all, p)
	}
	segments := segment.NewWordSegmenterDirect([]byte(text))
	for n := 0; segments.Segment(); n++ {
		if isPlain(segments.Bytes()) { // as most are
			add(piece{text: l.foldCase(cutTo(string(segments.Bytes()), maxWord)), segment: n})
			continue
		}
		var word strings.Builder
		end := func() {
			if word.Len() > 0 {
				folded := cutTo(l.foldCase(cutTo(word.String(), maxWord)), maxWord)
				add(piece{text: folded, segment: n})
				word.Reset()
			}
		}
		kind := segments.Type()
		for _, r := range string(segments.Bytes()) {
			switch {
			case unicode.IsMark(r) && word.Len() > 0:
				word.WriteRune(r)
			case unicode.IsMark(r) && len(joint) == 0 && len(all) > 0 && all[len(all)-1].alone:
				all[len(all)-1].text += string(r)
			case !unicode.IsLetter(r) && !unicode.IsNumber(r):
				end()
				joint = utf8.AppendRune(joint, r)
			case kind == segment.Ideo, kind == segment.None, l.cjk && isCJK(r):
				end()
				add(piece{text: l.foldCase(string(r)), segment: n, alone: true})
			default:
				word.WriteRune(r)
			}
		}
		end()
	}
	join()
	return all
}

// isCJK reports whether words of the script of a letter are divided into its characters.
func isCJK(r rune) bool {
	return r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo)
}

// isPlain reports whether a segment has letters and digits of ASCII alone.
func isPlain(text []byte) bool {
	for _, b := range text {
		if b|0x20 < 'a' && (b < '0' || b > '9') || b|0x20 > 'z' {
			return false
		}
	}
	return true
}

// joins reports whether what is between two pieces joins them, as in an address, the name of a file, or a word with a hyphen.
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

// word is what an index has of a piece.
type word struct {
	piece
	at     int    // its position: words that follow each other have positions that do
	stop   bool   // the language leaves it out
	part   int    // of a word; see the constants
	folded string // as it is written, without accents
	normal string // as the language normalizes it, without accents
	stems  []string
	joined string // with what it is joined to after it, without accents; "": with nothing
	late   bool   // it is not among the first ones that are joined
}

const (
	whole   = iota
	article // before a word, as in l'avion
	suffix  // after it, as in Ankara'da, which texts have at the position of the word
	nothing // the end of a possessive
)

// words returns those of a text that is normalized.
func (l *language) words(text string) []word {
	pieces := l.pieces(text)
	all := make([]word, len(pieces))
	at := 0
	for from := 0; from < len(pieces); {
		to := from + 1
		for to < len(pieces) && pieces[to].segment == pieces[from].segment {
			to++
		}
		l.divide(pieces[from:to], all[from:to])
		for i := from; i < to; i++ {
			if all[i].part == whole {
				at++
			}
			all[i].at = at
			if all[i].part == article {
				all[i].at++
			}
		}
		from = to
	}
	l.join(all)
	l.stemAll(all)
	return all
}

// join sets what words are joined to, and how they are written without accents.
func (l *language) join(words []word) {
	parts := 0
	for i := range words {
		words[i].folded = l.foldAccents(words[i].text)
		if parts++; i == 0 || words[i-1].next == "" {
			parts = 1
		}
		words[i].late = parts > maxParts
	}
	rest := ""
	for i := len(words) - 2; i >= 0; i-- {
		w, next := &words[i], &words[i+1]
		if next.next == "" || i+2 == len(words) {
			rest = next.folded
		}
		if w.next == "" {
			continue
		}
		if rest = cutTo(w.folded+w.next+rest, maxJoined); !w.late {
			w.joined = rest
		}
	}
}

// divide finds out what the pieces of a segment are.
func (l *language) divide(pieces []piece, words []word) {
	const mostParts = 3 // of a word that a language leaves out, such as don't
	together := ""
	for _, p := range pieces[:min(mostParts, len(pieces))] {
		together += p.text + p.next
	}
	stop := len(pieces) <= mostParts && l.stopWords[strings.TrimSuffix(together, pieces[len(pieces)-1].next)]
	for i, p := range pieces {
		words[i].piece = p
		words[i].stop = stop || l.stopWords[p.text]
	}
	last := len(pieces) - 1
	switch {
	case last == 0:
	case pieces[0].next == "'" && l.articleWords[pieces[0].text]:
		words[0].part = article
	case l.possessive && pieces[last-1].next == "'" && pieces[last].text == "s":
		words[last].part = nothing
	case l.suffixes && pieces[0].next == "'" && len([]rune(pieces[0].text)) > 1: // O'Brien has none
		for i := range words[1:] {
			words[i+1].part = suffix
		}
	}
}

// stemAll sets the stems of words: those of words with accents also as they are without, as some stemmers know accents only, and
// people leave them out.
func (l *language) stemAll(words []word) {
	var forms []string
	var of []int
	for i, w := range words {
		switch {
		case w.alone:
			words[i].normal, words[i].stems = w.folded, []string{w.folded}
		default:
			forms, of = append(forms, w.text), append(of, i)
			if w.folded != w.text {
				forms, of = append(forms, w.folded), append(of, i)
			}
		}
	}
	normal := filtered(l.normalize, forms)
	for n, stem := range filtered(l.stem, normal) {
		w := &words[of[n]]
		if w.normal == "" {
			w.normal = l.foldAccents(normal[n])
		}
		if stem = l.foldAccents(stem); stem == "" {
			stem = w.folded
		}
		if stem != "" && !slices.Contains(w.stems, stem) {
			w.stems = append(w.stems, stem)
		}
	}
}

// filtered returns words as a filter has them.
func filtered(filter analysis.TokenFilter, words []string) []string {
	if filter == nil {
		return words
	}
	tokens, all := make(analysis.TokenStream, len(words)), make([]string, len(words))
	for i, word := range words {
		tokens[i] = &analysis.Token{Term: []byte(word), Position: i + 1, Type: analysis.AlphaNumeric}
	}
	filter.Filter(slices.Clone(tokens))
	for i, token := range tokens {
		all[i] = string(token.Term)
	}
	return all
}

// terms returns what an index has of a text: the terms of each position. What is searched for has fewer: no word that the language
// leaves out, and of characters that follow each other, pairs alone.
func (l *language) terms(words []word, searched bool) (positions [][]string) {
	for i, w := range words {
		for len(positions) < w.at {
			positions = append(positions, nil)
		}
		switch here := &positions[max(w.at-1, 0)]; {
		case w.part == article, w.part == nothing, w.part == suffix && searched:
		case w.stop && (searched || w.folded == w.text): // without its accents it would be another word
		case l.cjk && w.alone:
			follows := i+1 < len(words) && words[i+1].alone && words[i+1].touches
			if follows {
				*here = append(*here, w.folded+words[i+1].folded)
			}
			if !searched || !follows && !w.pair(words, i) {
				*here = append(*here, w.folded)
			}
		default:
			*here = append(*here, w.stems...)
		}
	}
	return positions
}

// pair reports whether a character is the second one of a pair.
func (w word) pair(words []word, i int) bool { return w.touches && i > 0 && words[i-1].alone }
