package search

import "strings"

const (
	// maxWord is the most characters of a word that count, as in Lucene. The time that some stemmers take grows with
	// the square of it.
	maxWord = 255

	// maxJoined is how many characters of words that are joined, as in an address, count for the beginning of them all.
	maxJoined = 64

	// maxParts is from how many of the words that are joined on: else a text of single letters with dots would have a
	// hundred times as much.
	maxParts = 8

	// maxBeginning is how many of a beginning count where an index has beginnings.
	maxBeginning = 24
)

// word is the form of a piece in an index.
type word struct {
	piece
	*wordForm
	at     int    // its position: words that follow each other have positions that do
	stop   bool   // the language leaves it out
	part   int    // of a word; see the constants
	joined string // with what it is joined to after it, without accents; "": with nothing
	late   bool   // it is not among the first ones that are joined
}

const (
	whole   = iota
	article // before a word, as in l'avion
	suffix  // after it, as in Ankara'da, which texts have at the position of the word
	nothing // the end of a possessive
)

// words returns those of a text that is normalized. The forms of some may be known; known may be nil.
func (l *language) words(text string, known *wordForms) []word {
	all := l.pieces(text)
	l.setForms(all, known)
	for i := range all {
		all[i].stop = all[i].listed
	}
	at := 0
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].segment == all[from].segment {
			to++
		}
		l.divide(all[from:to])
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
	join(all)
	return all
}

// join sets what words are joined to.
func join(words []word) {
	parts := 0
	for i := range words {
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

// divide marks the parts of a segment's words: stop words, articles, endings.
func (l *language) divide(words []word) {
	last := len(words) - 1
	if last == 0 {
		return // as most are
	}
	const mostParts = 3 // of a word that a language leaves out, such as don't
	if len(words) <= mostParts {
		together := ""
		for _, w := range words {
			together += w.text + w.next
		}
		if l.stopWords[strings.TrimSuffix(together, words[last].next)] {
			for i := range words {
				words[i].stop = true
			}
		}
	}
	switch {
	case words[0].next == "'" && l.articleWords[words[0].text]:
		words[0].part = article
	case l.possessive && words[last-1].next == "'" && words[last].text == "s":
		words[last].part = nothing
	case l.suffixes && words[0].next == "'" && len([]rune(words[0].text)) > 1: // not O'Brien
		for i := range words[1:] {
			words[i+1].part = suffix
		}
	}
}

// terms returns the terms of each position of a text for an index. A searched text has fewer: it omits words that the
// language leaves out, and has only pairs of adjacent characters.
func (l *language) terms(words []word, searched bool) (positions [][]string) {
	if len(words) > 0 {
		positions = make([][]string, words[len(words)-1].at)
	}
	l.eachTerm(words, searched, func(term string, at int) { positions[at-1] = append(positions[at-1], term) })
	return positions
}

// eachTerm calls a function with the terms of a text, in the order of their positions.
func (l *language) eachTerm(words []word, searched bool, do func(term string, at int)) {
	for i := range words {
		w := &words[i]
		switch {
		case w.part == article, w.part == nothing, w.part == suffix && searched:
		case w.stop && (searched || w.folded == w.text): // without its accents it would be another word
		case l.cjk && w.alone:
			follows := i+1 < len(words) && words[i+1].alone && words[i+1].touches
			if follows {
				do(w.folded+words[i+1].folded, w.at)
			}
			if !searched || !follows && !w.pair(words, i) {
				do(w.folded, w.at)
			}
		default:
			for _, stem := range w.stems {
				do(stem, w.at)
			}
		}
	}
}

// pair reports whether a character is the second one of a pair.
func (w *word) pair(words []word, i int) bool { return w.touches && i > 0 && words[i-1].alone }
