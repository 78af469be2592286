package manual

import (
	"strings"
	"unicode"

	porter "github.com/blevesearch/go-porterstemmer"
)

// The longest word that is indexed, in bytes. Longer words are identifiers, which are found by their parts, or hashes.
const maxWord = 40

// token is a word of a text, as a stem, with the stems of its parts if it is an identifier.
type token struct {
	stem  string
	parts []string
}

// Words returns the stems of the words of a text, in order, without the words that most texts have. An identifier is
// followed by its parts: "maxObjectSize" is found as a whole, and by "object".
func Words(text string) []string {
	var all []string
	for _, t := range tokens(text) {
		if t.stem != "" {
			all = append(all, t.stem)
		}
		all = append(all, t.parts...)
	}
	return all
}

func tokens(text string) []token {
	raw := strings.FieldsFunc(apostrophes.Replace(text), noWord)
	all := make([]token, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		word := strings.ToLower(raw[i])
		if i+1 < len(raw) {
			if joined := verbs[stem(word)+" "+strings.ToLower(raw[i+1])]; joined != "" {
				all = append(all, token{stem: joined})
				i++
				continue
			}
		}
		t := token{stem: normal(word)}
		if parts := humps(raw[i]); len(parts) > 1 {
			for _, part := range parts {
				if part = normal(strings.ToLower(part)); part != "" {
					t.parts = append(t.parts, part)
				}
			}
		}
		if t.stem != "" || t.parts != nil {
			all = append(all, t)
		}
	}
	return all
}

// verbs are verbs of two words, and the stem of the noun that is written as one.
var verbs = map[string]string{
	"log in": "login", "log out": "logout", "sign in": "signin", "sign up": "signup", "sign out": "logout",
	"back up": "backup", "set up": "setup",
}

// normal returns the stem of a word in lower case, "" for one that is not indexed.
func normal(word string) string {
	if len(word) < 2 && !unicode.IsDigit(rune(word[0])) || len(word) > maxWord || stopWords[word] {
		return ""
	}
	if word = stem(word); word == "email" {
		return "mail"
	}
	return word
}

// apostrophes are left out, and so is the s of a possessive.
var apostrophes = strings.NewReplacer("’s ", " ", "'s ", " ", "’", "", "'", "")

func noWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// stem returns what the forms of an English word have in common.
func stem(word string) string {
	for _, r := range word {
		if r > unicode.MaxASCII || unicode.IsDigit(r) {
			return word
		}
	}
	return string(porter.StemWithoutLowerCasing([]rune(word)))
}

// humps takes an identifier apart: "baseURL" is "base" and "URL".
func humps(word string) []string {
	var parts []string
	begin, before := 0, rune(0)
	for i, r := range word {
		if i > begin && unicode.IsUpper(r) && unicode.IsLower(before) {
			parts = append(parts, word[begin:i])
			begin = i
		}
		before = r
	}
	return append(parts, word[begin:])
}

// stopWords are the words that most sentences and questions have.
var stopWords = func() map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.Fields(`
		a an and any anybody anyone are as at be been belfry but by can could do does did each for from get gets getting had has have how
		i if in into is isn it its itself just like me my need needs no not of on or our should so some somebody someone something such
		than that the their them then there these they this those to too us use used using want was way we were what when where
		which while who why will with without would you your im ive dont doesnt cant wont make makes much must may only also
		work works working way please help`) {
		all[word] = true
	}
	return all
}()

// concept is a thing that a query names: the typed words, and belfry's words for the same.
type concept struct {
	typed, means []string
	parts        bool // means are the parts of an identifier, which count only if no section has the identifier
}

// query returns the concepts of a query.
func query(text string) (all []concept) {
	const most = 16 // words
	typed := tokens(text)
	if len(typed) > most {
		typed = typed[:most]
	}
	for len(typed) > 0 {
		c, n := concept{typed: []string{typed[0].stem}, means: typed[0].parts, parts: true}, 1
		for _, s := range synonyms()[typed[0].stem] {
			if len(s.phrase) > n && begins(typed, s.phrase) || len(s.phrase) == 1 && n == 1 {
				c, n = concept{typed: s.phrase, means: s.means}, len(s.phrase)
			}
		}
		all, typed = append(all, c), typed[n:]
	}
	return all
}

// begins reports whether words begin with a phrase.
func begins(words []token, phrase []string) bool {
	if len(words) < len(phrase) {
		return false
	}
	for i, word := range phrase {
		if words[i].stem != word {
			return false
		}
	}
	return true
}
