package site

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"belfry/pkg/api/console/manual"
)

// The weights of a word's places, and how much the length of a section counts against its text (BM25).
const (
	inTitle      = 5.0 // the title of the page, at its top
	ofPage       = 1.2 // the same in the sections below
	inHeading    = 4.0 // the heading of the section
	aboveHeading = 1.0 // a heading that the section is below
	inText       = 2.5 // at most
	saturation   = 1.2
	lengthWeight = 0.6
	greatest     = inTitle + inHeading + inText
)

// entry is a section that has a word.
type entry struct {
	section int
	weight  byte
}

// index returns the index of words, in the format of manual/index.go.
func (s *site) index() []byte {
	lists := map[string][]entry{}
	sections, average := 0, s.averageLength()
	for _, p := range s.pages {
		if p.file == start { // it names everything
			sections += len(p.Headings)
			continue
		}
		title := set(manual.Words(p.Title + " " + p.Label))
		var above []manual.Heading
		for i, heading := range p.Headings {
			for len(above) > 0 && above[len(above)-1].Level >= heading.Level {
				above = above[:len(above)-1]
			}
			weights := map[string]float64{}
			for word := range title {
				weights[word] += ofPage
				if i == 0 {
					weights[word] += inTitle - ofPage
				}
			}
			for n, h := range append(above, heading) {
				for word := range set(manual.Words(h.Text)) {
					switch {
					case h.Level == 1:
					case n == len(above):
						weights[word] += inHeading
					default:
						weights[word] += aboveHeading
					}
				}
			}
			words := p.sections[i]
			norm := saturation * (1 - lengthWeight + lengthWeight*float64(len(words))/average)
			for word, n := range count(words) {
				weights[word] += inText * n / (n + norm)
			}
			for word, weight := range weights {
				lists[word] = append(lists[word],
					entry{sections, byte(max(1, math.Round(min(1, weight/greatest)*math.MaxUint8)))})
			}
			sections++
			above = append(above, heading)
		}
	}
	return encode(sections, lists)
}

func (s *site) averageLength() float64 {
	words, sections := 0, 0
	for _, p := range s.pages {
		for _, section := range p.sections {
			words += len(section)
			sections++
		}
	}
	return float64(words) / float64(max(1, sections))
}

func encode(sections int, lists map[string][]entry) []byte {
	text := binary.AppendUvarint(nil, uint64(sections))
	text = binary.AppendUvarint(text, uint64(len(lists)))
	before := ""
	for _, word := range slices.Sorted(maps.Keys(lists)) {
		shared := 0
		for shared < min(len(before), len(word)) && before[shared] == word[shared] {
			shared++
		}
		text = binary.AppendUvarint(text, uint64(shared))
		text = binary.AppendUvarint(text, uint64(len(word)-shared))
		text = append(text, word[shared:]...)
		var list []byte
		last := 0
		for _, e := range lists[word] {
			list = append(binary.AppendUvarint(list, uint64(e.section-last)), e.weight)
			last = e.section
		}
		text = append(binary.AppendUvarint(text, uint64(len(list))), list...)
		before = word
	}
	return text
}

func set(words []string) map[string]bool {
	all := map[string]bool{}
	for _, word := range words {
		all[word] = true
	}
	return all
}

func count(words []string) map[string]float64 {
	all := map[string]float64{}
	for _, word := range words {
		all[word]++
	}
	return all
}
