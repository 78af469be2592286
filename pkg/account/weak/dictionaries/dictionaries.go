// Package dictionaries has the words of the estimate of passwords loaded when the first password is estimated.
//
// The library loads them when the program starts: 9 MB of memory and 20 ms in every process, in commands too, also
// where no password is estimated. So this package takes the lists of words away before the library loads them. Go
// initializes packages in the order of their import paths, after those that they import: this one after the package
// with the lists, and before the one that loads them. Its only import must be the former.
package dictionaries

import (
	"strings"
	"sync"
	_ "unsafe" // of go:linkname

	"github.com/trustelem/zxcvbn/frequency"
)

// lists are the words, the most frequent first, by the names of the lists.
var lists = take()

func take() map[string][]string {
	all := frequency.FrequencyLists
	frequency.FrequencyLists = nil
	return all
}

// loaded is the variable of the library that has the rank of each word, by the names of the lists.
//
//go:linkname loaded github.com/trustelem/zxcvbn/matching.defaultRankedDictionnaries
var loaded struct{ ranks map[string]map[string]int }

// Load gives the library its words, the first time that it is called.
var Load = sync.OnceFunc(func() {
	ranks := make(map[string]map[string]int, len(lists))
	for name, words := range lists {
		ranks[name] = make(map[string]int, len(words))
		for i, word := range words {
			ranks[name][strings.ToLower(word)] = i + 1
		}
	}
	loaded.ranks = ranks
	lists = nil
})
