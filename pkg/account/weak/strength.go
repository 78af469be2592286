package weak

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trustelem/zxcvbn"

	"belfry/pkg/account/weak/dictionaries"
)

// MaxScore is the score of the strongest passwords.
const MaxScore = 4

// Limits of an estimate, whose time grows much faster than the lengths of a password and of its substitutes for
// letters.
const (
	// maxEstimated is how many characters of a password are estimated. The limit is not in bytes, because Japanese
	// characters have three bytes each: with a limit of 32 bytes, a password of any length could not get the highest
	// score.
	maxEstimated = 32

	maxOwnText  = 256 // characters of a text of the user
	maxOwnWords = 32
	minOwnWord  = 3 // bytes; shorter parts are in most passwords
)

// estimate returns the score of a password: 0 to MaxScore, for fewer than 10^3, 10^6, 10^8, 10^10 guesses, and for
// more.
func estimate(password string, own []string) int {
	dictionaries.Load()
	return zxcvbn.PasswordStrength(password, own).Score
}

// isGuessable reports whether the score of a password is too low.
func (c *Checker) isGuessable(ctx context.Context, password string, own []string) (bool, error) {
	if c.MinScore == 0 {
		return false, nil
	}
	release, err := c.Slot(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	return c.estimate(beginning(password, maxEstimated), wordsOf(own)) < c.MinScore, nil
}

// beginning returns the first characters of a text. It reads text that is not UTF-8 as Latin-1, which a form may send,
// because the library does not estimate malformed text.
func beginning(text string, most int) string {
	if !utf8.ValidString(text) {
		text = latin1(text[:min(len(text), most)])
	}
	n := 0
	for i := range text {
		if n == most {
			return text[:i]
		}
		n++
	}
	return text
}

func latin1(text string) string {
	runes := make([]rune, len(text))
	for i := range len(text) {
		runes[i] = rune(text[i])
	}
	return string(runes)
}

// wordsOf returns the first guesses from a user's own texts, such as an address and a name: each text, and its words.
// They are truncated like passwords, so that a long address is found in a password that begins with it.
func wordsOf(texts []string) []string {
	words := []string{}
	add := func(word string) {
		if word = beginning(word, maxEstimated); len(word) >= minOwnWord && len(words) < maxOwnWords &&
			!slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	for _, text := range texts {
		text = beginning(text, maxOwnText)
		add(text)
		for word := range strings.FieldsFuncSeq(text,
			func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			add(word)
		}
	}
	return words
}
