package search

import (
	"slices"
	"strconv"
	"sync"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/registry"
)

// Analyzers of an index, by how their names end: of texts, of what else begins as asked for, and of all beginnings.
const (
	asWords         = ""
	asBeginnings    = "-beginnings"
	asAllBeginnings = "-all-beginnings"
)

// analyzerOf returns the name of an analyzer. An index has it, so what it makes of texts changes together with form.
func analyzerOf(language, as string) string {
	name := "belfry-" + strconv.Itoa(form)
	if language != "" {
		name += "-" + language
	}
	return name + as
}

// analyzer has bleve index texts by the rules of a language.
type analyzer struct {
	*language
	as string
}

func init() { //nolint:gochecknoinits // the registry of bleve is global
	for name := range specs {
		for _, as := range []string{asWords, asBeginnings, asAllBeginnings} {
			must(registry.RegisterAnalyzer(analyzerOf(name, as),
				func(map[string]any, *registry.Cache) (analysis.Analyzer, error) {
					l, err := languageOf(name)
					return analyzer{l, as}, err
				}))
		}
	}
}

func must(err error) {
	if err != nil {
		panic(err) // two of one name
	}
}

// Analyze implements analysis.Analyzer. It omits the byte offsets of terms, which nothing uses.
func (a analyzer) Analyze(text []byte) analysis.TokenStream {
	words := a.analyzed(string(text))
	var s stream
	switch a.as {
	case asWords:
		s = newStream(len(words))
		a.eachTerm(words, false, s.add)
	case asBeginnings:
		for _, term := range a.beginnings(words) {
			s.add(term, 1)
		}
	case asAllBeginnings:
		a.allBeginnings(words, &s)
	}
	return s.tokens
}

// stream makes tokens of terms, many at once.
type stream struct {
	tokens analysis.TokenStream
	unused []analysis.Token
	bytes  []byte // of terms; append-only
}

func newStream(words int) stream {
	const letters = 8 // of a word
	return stream{make(analysis.TokenStream, 0, words), make([]analysis.Token, 0, words),
		make([]byte, 0, words*letters)}
}

// add adds a token.
func (s *stream) add(term string, at int) {
	s.token(s.term(term), at)
}

// term returns the bytes of a term, which are immutable.
func (s *stream) term(text string) []byte {
	from := len(s.bytes)
	s.bytes = append(s.bytes, text...)
	return s.bytes[from:len(s.bytes):len(s.bytes)]
}

func (s *stream) token(term []byte, at int) {
	const most = 1024
	if len(s.unused) == cap(s.unused) {
		s.unused = make([]analysis.Token, 0, min(most, max(16, len(s.tokens))))
	}
	s.unused = append(s.unused, analysis.Token{Term: term, Position: at})
	s.tokens = append(s.tokens, &s.unused[len(s.unused)-1])
}

// recent are words of the texts that were analyzed last, which bleve has analyzed twice in a row: for two fields.
// Nothing that is searched for comes here, so the time of a search does not depend on them.
type recent struct {
	mu  sync.Mutex
	all []analyzed
}

type analyzed struct {
	text  string
	words []word
}

const (
	maxRecent     = 8 // more than bleve analyzes at once
	maxRecentText = 16 << 10
)

// analyzed returns the words of a text: those of the analysis before, if there was one, which is forgotten then.
func (a analyzer) analyzed(text string) []word {
	if len(text) > maxRecentText {
		return a.words(normalize(text), &a.forms)
	}
	a.recent.mu.Lock()
	i := slices.IndexFunc(a.recent.all, func(one analyzed) bool { return one.text == text })
	if i >= 0 && a.as != asWords {
		words := a.recent.all[i].words
		a.recent.all = slices.Delete(a.recent.all, i, i+1)
		a.recent.mu.Unlock()
		return words
	}
	a.recent.mu.Unlock()
	words := a.words(normalize(text), &a.forms)
	if a.as == asWords && i < 0 {
		a.recent.mu.Lock()
		a.recent.all = append(a.recent.all, analyzed{text, words})
		a.recent.all = a.recent.all[max(0, len(a.recent.all)-maxRecent):]
		a.recent.mu.Unlock()
	}
	return words
}

// beginnings returns what an index has of words besides their stems, in which the beginnings of words are searched,
// too.
func (l *language) beginnings(words []word) (all []string) {
	seen := map[string]bool{}
	for _, w := range words {
		if w.begins() {
			for i, of := range []string{w.folded, w.normal} {
				if !slices.Contains(w.stems, of) && (i == 0 || of != w.folded) {
					all = append(all, of)
				}
			}
		}
		if w.joined != "" && !seen[w.joined] {
			seen[w.joined] = true
			all = append(all, w.joined)
		}
	}
	return all
}

// allBeginnings adds the beginnings of words, each of them once for a word; those of words that are joined once for a
// text.
func (l *language) allBeginnings(words []word, s *stream) {
	seen := map[string]bool{}
	var of []string
	for _, w := range words {
		of = of[:0]
		if w.begins() {
			of = append(append(of, w.folded, w.normal), w.stems...)
		}
		if w.joined != "" && !seen[w.joined] {
			seen[w.joined] = true
			of = append(of, w.joined)
		}
		for i, text := range of {
			text = cutTo(text, maxBeginning)
			common := 0 // with one before, bytes
			for _, before := range of[:i] {
				common = max(common, sameBytes(text, before))
			}
			if common == len(text) {
				continue
			}
			term, characters := s.term(text), 0
			for end := range text {
				if characters++; characters > minPrefix && end > common {
					s.token(term[:end:end], 1)
				}
			}
			if characters >= minPrefix {
				s.token(term, 1)
			}
		}
	}
}

// sameBytes returns how many bytes at the beginning of two texts are the same.
func sameBytes(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// begins reports whether a search for a beginning finds the word.
func (w *word) begins() bool { return !w.stop && !w.alone && (w.part == whole || w.part == suffix) }
