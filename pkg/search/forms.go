package search

import (
	"slices"
	"strings"
	"sync"

	"github.com/blevesearch/bleve/v2/analysis"
)

// wordForm has the forms of a word in a language; they do not depend on the text.
type wordForm struct {
	text   string // its case is folded
	listed bool   // the language leaves it out
	folded string // without accents
	normal string // as the language normalizes it, without accents
	stems  []string
}

// wordForms are those of the words that were met last in texts: most come again, and what is made of one takes longer
// than to find it here. Nothing that is searched for comes here, so the time of a search does not depend on what texts
// have.
type wordForms struct {
	mu          sync.Mutex
	now, before map[string]*wordForm // by words as they are written
}

const (
	maxForms    = 4096 // in each of the two
	maxFormWord = 64   // bytes; few words are longer
)

// find sets the forms of pieces that are known.
func (f *wordForms) find(pieces []word) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range pieces {
		p := &pieces[i]
		if p.alone || len(p.written) > maxFormWord {
			continue
		}
		one, ok := f.now[p.written]
		if !ok {
			if one, ok = f.before[p.written]; ok {
				f.keep(strings.Clone(p.written), one) // what is kept keeps no text
			}
		}
		p.wordForm = one
	}
}

// add keeps the forms of words.
func (f *wordForms) add(words []string, of []*wordForm) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, word := range words {
		if len(word) <= maxFormWord {
			f.keep(word, of[i])
		}
	}
}

// keep keeps a form in place of those that were not met for long, if there are many. It is called with the lock held.
func (f *wordForms) keep(word string, of *wordForm) {
	if f.now == nil || len(f.now) >= maxForms {
		f.before, f.now = f.now, make(map[string]*wordForm)
	}
	f.now[word] = of
}

// setForms sets the forms of pieces, some of which may be known; known may be nil.
func (l *language) setForms(pieces []word, known *wordForms) {
	if known != nil {
		known.find(pieces)
	}
	var words []string
	var made []*wordForm
	var byWord map[string]*wordForm // of those that are made, as a word may come again
	for i := range pieces {
		p := &pieces[i]
		switch {
		case p.wordForm != nil:
			continue
		case p.alone:
			folded := l.foldAccents(p.written)
			p.wordForm = &wordForm{text: p.written, listed: l.stopWords[p.written], folded: folded, normal: folded,
				stems: []string{folded}}
			continue
		case byWord == nil:
			byWord = map[string]*wordForm{}
		}
		one, ok := byWord[p.written]
		if !ok {
			written := strings.Clone(p.written) // what is kept keeps no text
			one = &wordForm{text: cutTo(l.foldCase(written), maxWord)}
			one.listed, one.folded = l.stopWords[one.text], l.foldAccents(one.text)
			byWord[written] = one
			words, made = append(words, written), append(made, one)
		}
		p.wordForm = one
	}
	if len(made) > 0 {
		l.stemAll(made)
		if known != nil {
			known.add(words, made)
		}
	}
}

// stemAll sets the stems of words: those of words with accents also as they are without, as some stemmers know accents
// only, and people leave them out.
func (l *language) stemAll(all []*wordForm) {
	texts, of := make([]string, 0, len(all)), make([]*wordForm, 0, len(all))
	for _, f := range all {
		texts, of = append(texts, f.text), append(of, f)
		if f.folded != f.text {
			texts, of = append(texts, f.folded), append(of, f)
		}
	}
	normal := filtered(l.normalize, texts)
	for n, stem := range filtered(l.stem, normal) {
		f := of[n]
		if f.normal == "" {
			f.normal = l.foldAccents(normal[n])
		}
		if stem = l.foldAccents(stem); stem == "" {
			stem = f.folded
		}
		if stem != "" && !slices.Contains(f.stems, stem) {
			f.stems = append(f.stems, stem)
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
