package record

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Users are found by parts of their names and addresses. Both stores index the parts of a text of three characters, and
// those of two with which a part of it begins. In scripts without spaces between words, each one and two characters are
// parts too.

// findFormat is part of the names of the indexes. It changes with what Parts returns.
const findFormat = "find-1"

// IdentFinder is the name of the index of idents by the parts of their addresses and names.
const IdentFinder = findFormat

// Bounds of the text of a record by which its user is found.
const (
	maxFindText  = 256 // characters of a field
	maxFindTexts = 32
	maxFindParts = 256
)

// UserFinder finds users by the parts of their names.
type UserFinder struct {
	Title   []string // the fields that name a user, besides those whose names say so
	Private []string // fields that don't leave the server
}

// Index is the index of users by the parts of their names.
func (f UserFinder) Index() store.KeyIndex {
	sum := sha256.Sum256([]byte(strings.Join(f.Title, "\x00") + "\x00\x00" + strings.Join(f.Private, "\x00")))
	return store.KeyIndex{Name: findFormat + "-" + hex.EncodeToString(sum[:4]), Parts: 1, Multi: true,
		Keys: func(body []byte) [][][]byte { return findKeys(f.Texts(body)) }}
}

// Texts returns the texts of an encoded user by which they are found. They are bounded: a search folds those of many
// users, and users choose theirs.
func (f UserFinder) Texts(body []byte) (texts []string) {
	_ = object.Each(body, func(name string, value []byte) bool {
		if slices.Contains(f.Title, name) || namesUser(name) {
			if text, ok := object.Text(value); ok && name[0] != '_' && !slices.Contains(f.Private, name) {
				texts = append(texts, beginning(text))
			}
		}
		return len(texts) < maxFindTexts
	})
	return texts
}

// beginning returns the characters of a text by which it is found.
func beginning(text string) string {
	n := 0
	for at := range text {
		if n++; n > maxFindText {
			return text[:at]
		}
	}
	return text
}

// namesUser reports whether a field of a user, or of a profile, has a name or an address.
func namesUser(field string) bool {
	field = strings.ToLower(field)
	return strings.Contains(field, "name") || strings.Contains(field, "mail") || strings.Contains(field, "login")
}

// IdentIndex is the index of idents by the parts of their addresses and names.
func IdentIndex() store.KeyIndex {
	return store.KeyIndex{Name: IdentFinder, Parts: 1, Multi: true,
		Keys: func(body []byte) [][][]byte { return findKeys(IdentTexts(body)) }}
}

// IdentTexts returns the texts by which the user of an encoded ident is found: its address, or those of its profile.
func IdentTexts(body []byte) (texts []string) {
	values := object.Values(body, []string{"type", "_id", "profile"})
	if provider, _ := object.Text(values[0]); provider == Email {
		address, _ := object.Text(values[1])
		return append(texts, withUnicode(address))
	}
	_ = object.Each(values[2], func(name string, value []byte) bool { // a passkey has no profile
		if text, ok := object.Text(value); ok && namesUser(name) {
			texts = append(texts, withUnicode(text))
		}
		return len(texts) < maxFindTexts
	})
	return texts
}

// withUnicode returns the beginning of an address, and for an international domain, which is stored in its ASCII form,
// the one that people write.
func withUnicode(address string) string {
	address = beginning(address)
	at := strings.LastIndexByte(address, '@')
	if at < 0 || !strings.Contains(address, "xn--") {
		return address
	}
	domain, err := idna.ToUnicode(address[at+1:])
	if err != nil {
		return address
	}
	return beginning(address[:at+1] + domain + " " + address)
}

func findKeys(texts []string) (keys [][][]byte) {
	for _, part := range Parts(texts) {
		keys = append(keys, [][]byte{[]byte(part)})
	}
	return keys
}

var (
	foldCase = cases.Fold() // stateless
	plain    = strings.NewReplacer("ø", "o", "ł", "l", "æ", "ae", "œ", "oe", "đ", "d", "ı", "i", "þ", "th", "ð", "d")
)

// Folded returns a text in which case, accents and the forms of Unicode make no difference.
func Folded(text string) string {
	text = plain.Replace(foldCase.String(norm.NFKD.String(text)))
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Mn, unicode.Cf) {
			return -1
		}
		return r
	}, norm.NFKD.String(text)))
}

// Parts returns the distinct parts of texts by which they are found: at most so many.
func Parts(texts []string) (parts []string) {
	known := map[string]bool{}
	add := func(part []rune) {
		if text := string(part); !known[text] && len(parts) < maxFindParts {
			known[text] = true
			parts = append(parts, text)
		}
	}
	for _, text := range texts {
		for _, word := range strings.Fields(Folded(beginning(text))) {
			letters := []rune(word)
			for i, r := range letters {
				left := letters[i:]
				if len(left) >= 3 {
					add(left[:3])
				}
				if dense(r) {
					add(left[:1])
				}
				if len(left) >= 2 && (dense(r) || begins(letters, i)) {
					add(left[:2])
				}
			}
		}
	}
	return parts
}

// dense reports whether a character is of a script that has no spaces between words.
func dense(r rune) bool {
	return r >= 0x2e80 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// begins reports whether a part of a word begins at a character: the word, a domain, a last name after a dot.
func begins(word []rune, at int) bool {
	alphanumeric := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return alphanumeric(word[at]) && (at == 0 || !alphanumeric(word[at-1]))
}

// Anywhere reports whether records have a part wherever it is in a word, and not only where a part of a word begins.
func Anywhere(part string) bool {
	letters := []rune(part)
	return len(letters) >= 3 || dense(letters[0])
}

// PartsOf returns the parts by which a word of a search is found, of three characters if it has as many; none: it is
// too short to be found.
func PartsOf(word string) []string {
	parts := Parts([]string{word})
	longest := 0
	for _, part := range parts {
		longest = max(longest, len([]rune(part)))
	}
	return slices.DeleteFunc(parts, func(part string) bool { return len([]rune(part)) < longest })
}
