package search

import (
	"strings"
	"sync"

	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/lang/ar"
	"github.com/blevesearch/bleve/v2/analysis/lang/cjk"
	"github.com/blevesearch/bleve/v2/analysis/lang/da"
	"github.com/blevesearch/bleve/v2/analysis/lang/de"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/analysis/lang/es"
	"github.com/blevesearch/bleve/v2/analysis/lang/fi"
	"github.com/blevesearch/bleve/v2/analysis/lang/fr"
	"github.com/blevesearch/bleve/v2/analysis/lang/hu"
	"github.com/blevesearch/bleve/v2/analysis/lang/it"
	"github.com/blevesearch/bleve/v2/analysis/lang/nl"
	"github.com/blevesearch/bleve/v2/analysis/lang/no"
	"github.com/blevesearch/bleve/v2/analysis/lang/pt"
	"github.com/blevesearch/bleve/v2/analysis/lang/ro"
	"github.com/blevesearch/bleve/v2/analysis/lang/ru"
	"github.com/blevesearch/bleve/v2/analysis/lang/sv"
	"github.com/blevesearch/bleve/v2/analysis/lang/tr"
	"github.com/blevesearch/bleve/v2/analysis/token/porter"
	"github.com/blevesearch/bleve/v2/registry"

	"belfry/pkg/errs"
)

// spec says how words are made in a language. Lists of stop words and stemmers are those of bleve, named as it names
// them.
type spec struct {
	stop, normalizer, stemmer string
	articles                  string            // that are joined by an apostrophe before a word
	letters                   *strings.Replacer // that are written for those of the language, in lower case
	alphabet                  string            // letters of their own, although others have a mark: å is no a
	dotless                   bool              // I is the upper case of ı, and İ that of i
	possessive                bool              // 's at the end is of no word
	suffixes                  bool              // neither is what follows an apostrophe
	cjk                       bool              // words are not separated
}

const (
	swedish = "åäö"
	danish  = "æøå"
)

// specs has the spec of each language; "" stands for no language: words as they are.
var specs = map[string]spec{
	"":               {},
	ar.AnalyzerName:  {stop: ar.StopName, normalizer: ar.NormalizeName, stemmer: ar.StemmerName},
	cjk.AnalyzerName: {cjk: true},
	da.AnalyzerName: {stop: da.StopName, stemmer: da.SnowballStemmerName, alphabet: danish,
		letters: strings.NewReplacer("ä", "æ", "ö", "ø")},
	de.AnalyzerName: {stop: de.StopName, normalizer: de.NormalizeName, stemmer: de.LightStemmerName},
	en.AnalyzerName: {stop: en.StopName, stemmer: porter.Name, possessive: true},
	es.AnalyzerName: {stop: es.StopName, normalizer: es.NormalizeName, stemmer: es.LightStemmerName, alphabet: "ñ"},
	fi.AnalyzerName: {stop: fi.StopName, stemmer: fi.SnowballStemmerName, alphabet: swedish,
		letters: strings.NewReplacer("æ", "ä", "ø", "ö")},
	fr.AnalyzerName: {stop: fr.StopName, stemmer: fr.LightStemmerName, articles: fr.ArticlesName},
	hu.AnalyzerName: {stop: hu.StopName, stemmer: hu.SnowballStemmerName},
	it.AnalyzerName: {stop: it.StopName, stemmer: it.LightStemmerName, articles: it.ArticlesName},
	nl.AnalyzerName: {stop: nl.StopName, stemmer: nl.SnowballStemmerName},
	no.AnalyzerName: {stop: no.StopName, stemmer: no.SnowballStemmerName, alphabet: danish,
		letters: strings.NewReplacer("ä", "æ", "ö", "ø")},
	pt.AnalyzerName: {stop: pt.StopName, stemmer: pt.LightStemmerName},
	// as the stemmer has them
	ro.AnalyzerName: {stop: ro.StopName, stemmer: ro.SnowballStemmerName,
		letters: strings.NewReplacer("ș", "ş", "ț", "ţ")},
	ru.AnalyzerName: {stop: ru.StopName, stemmer: ru.SnowballStemmerName, letters: strings.NewReplacer("ё", "е")},
	sv.AnalyzerName: {stop: sv.StopName, stemmer: sv.SnowballStemmerName, alphabet: swedish,
		letters: strings.NewReplacer("æ", "ä", "ø", "ö")},
	tr.AnalyzerName: {stop: tr.StopName, stemmer: tr.SnowballStemmerName, dotless: true, suffixes: true},
}

// language divides texts and searches into words.
type language struct {
	spec
	stopWords, articleWords map[string]bool      // in lower case, with accents
	normalize               analysis.TokenFilter // nil: accents alone are folded
	stem                    analysis.TokenFilter // nil: words are as they are written
	recent                  recent
	forms                   wordForms
}

var loaded sync.Map // languages, by name

// languageOf returns a language, with the lists that it needs.
func languageOf(name string) (*language, error) {
	if l, ok := loaded.Load(name); ok {
		return l.(*language), nil
	}
	of, ok := specs[name]
	if !ok {
		return nil, errs.New(errs.Internal, "no language is called %q", name)
	}
	l, cache := &language{spec: of}, registry.NewCache()
	var err error
	if l.stopWords, err = l.list(cache, of.stop); err != nil {
		return nil, err
	}
	if l.articleWords, err = l.list(cache, of.articles); err != nil {
		return nil, err
	}
	if of.normalizer != "" {
		if l.normalize, err = cache.TokenFilterNamed(of.normalizer); err != nil {
			return nil, err
		}
	}
	if of.stemmer != "" {
		if l.stem, err = cache.TokenFilterNamed(of.stemmer); err != nil {
			return nil, err
		}
	}
	loaded.Store(name, l)
	return l, nil
}

// list returns the words of a list of bleve in the form that words of texts have when they are compared with it.
func (l *language) list(cache *registry.Cache, name string) (map[string]bool, error) {
	if name == "" {
		return nil, nil
	}
	words, err := cache.TokenMapNamed(name)
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for word := range words {
		all[l.foldCase(normalize(word))] = true
	}
	return all, nil
}
