package search

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// texts is an index of texts, which have their numbers.
type texts struct {
	*testing.T
	*textIndex
}

// eachWay runs a test with an index of texts that has words, and with one that has all beginnings of them.
func eachWay(t *testing.T, language string, of []string, test func(t texts)) {
	t.Helper()
	for name, rule := range map[string]string{"shared": "", "own": "rule"} {
		t.Run(strings.TrimSpace(language+" "+name), func(t *testing.T) {
			x, err := newIndex(filepath.Join(t.TempDir(), "index"),
				Settings{Fields: []string{"text"}, Language: language, Rule: rule})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(x.close)
			b := x.batch()
			for i, text := range of {
				var lines []any // as the strings of an array
				for line := range strings.SplitSeq(text, "\n") {
					lines = append(lines, line)
				}
				document := map[string]any{fieldName(0): lines}
				if rule != "" {
					document[termsField] = []string{"term"}
				}
				if err := b.batch.Index(fmt.Sprint(i), document); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.write(t.Context(), &position{}); err != nil {
				t.Fatal(err)
			}
			test(texts{t, x})
		})
	}
}

// find returns the numbers of the texts that are found.
func (t texts) find(q string) (all []string, err error) {
	parts, err := t.parts(q)
	if err != nil {
		return nil, err
	}
	s := store.TextSearch{Words: q, Fields: []string{"text"}, Limit: 1000, Only: &policy.Selection{Every: true}}
	var hits []store.TextHit
	if t.settings.Rule != "" {
		hits, _, err = t.searchOwn(t.Context(), parts, s)
	} else {
		found, errOf := t.queryOf(parts, s.Fields)
		if errOf != nil {
			return nil, errOf
		}
		hits, _, err = t.search(t.Context(), found, s)
	}
	for _, hit := range hits {
		all = append(all, hit.UUID)
	}
	slices.Sort(all)
	return all, err
}

// finds checks what is found: the numbers of texts, or an error.
func (t texts) finds(q, want string) {
	t.Helper()
	all, err := t.find(q)
	got := strings.Join(all, " ")
	if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%s finds %q, expected %q", q, got, want)
	}
}

// spellings returns a word as it may be written.
func spellings(language, word string) []string {
	upper, lower := strings.ToUpper(word), strings.ToLower(word)
	if language == "tr" {
		upper, lower = strings.ToUpperSpecial(unicode.TurkishCase, word),
			strings.ToLowerSpecial(unicode.TurkishCase, word)
	}
	runes := []rune(norm.NFC.String(word))
	all := []string{
		word, norm.NFD.String(word), norm.NFKD.String(word), upper, norm.NFD.String(upper), lower,
		norm.NFD.String(lower), strings.ReplaceAll(upper, "SS", "ẞ"),
		strings.ReplaceAll(word, "'", "’"), strings.ReplaceAll(word, "'", "`"),
		strings.ReplaceAll(strings.ReplaceAll(word, "fi", "ﬁ"), "ff", "ﬀ"), fullWidth(word), fullWidth(upper),
		string(runes[:1]) + "\u00ad" + string(runes[1:]), string(runes[:2]) + "\u200d" + string(runes[2:]),
		string(runes[:2]) + "\u2060" + string(runes[2:]) + "\ufe0f", "\u200f" + word,
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func fullWidth(word string) string {
	return strings.Map(func(r rune) rune {
		if '!' <= r && r <= '~' {
			return r + 0xfee0
		}
		return r
	}, word)
}

// TestAWordIsFoundHoweverItIsWritten: in each language, by the whole word, by each beginning, and in a phrase.
func TestAWordIsFoundHoweverItIsWritten(t *testing.T) {
	for language, words := range map[string][]string{
		"": {"café", "Ångström", "İzmir", "ISPARTA", "Straße", "Łódź", "smørrebrød", "ёлка", "Йогурт", "ὈΔΥΣΣΕΎΣ",
			"final", "staffing", "O'Brien", "first.last", "report_final.pdf", "ǅungla", "Nguyễn", "हिन्दी",
			"می\u200cخواهم", "שָׁלוֹם", "2024", "1.20"},
		"ar":  {"أحمد", "الكتاب", "مُحَمَّد", "مدرسة", "café"},
		"cjk": {"Straße", "iphone", "café"},
		"da":  {"smørrebrød", "Åbenrå", "ærlighed", "idéer"},
		"de":  {"Müller", "Straße", "Übergrößen", "Mueller", "Aufgaben", "ueber-all"},
		"en": {"running", "résumés", "naïve", "whale's", "O'Brien", "ISTANBUL", "happiness", "first.last",
			"universities"},
		"es": {"corazón", "España", "niños", "pingüino", "árboles"},
		"fi": {"käyttäjä", "Älykkyys", "öljyä", "Ångström"},
		"fr": {"garçon", "l'avion", "L'Été-Indien", "élèves", "cœur", "première", "français", "qu'elles-mêmes"},
		"hu": {"kőművesek", "árvíztűrő", "Üzletek", "gyerekeknek"},
		"it": {"dell'acqua", "perché-no", "università", "città"},
		"nl": {"reünie", "coöperatie", "ideeën"},
		"no": {"blåbærsyltetøy", "Ålesund", "øyene"},
		"pt": {"ações", "quilométricas", "coração", "ônibus"},
		"ro": {"absența", "absenţi", "București", "învățător", "țară"},
		"ru": {"Ёлками", "километрах", "съёмка", "ЙОГУРТЫ", "за́мок"},
		"sv": {"smörgåsar", "Ålder", "öppningar", "idéer"},
		"tr": {"İzmir", "ISPARTA", "ağacı", "Kıbrıs'ta", "çiçekler", "IŞIK", "Türkiye'nin"},
	} {
		var all []string
		for _, word := range words {
			for _, s := range spellings(language, word) {
				all = append(all, "qua "+s+" zulu")
			}
		}
		eachWay(t, language, all, func(t texts) {
			n := 0
			for _, word := range words {
				written := spellings(language, word)
				for _, s := range written {
					queries := []string{s, s + "*", `"qua ` + s + ` zulu"`, `"qua ` + s + `"`, `"` + s + ` zulu"`}
					runes := []rune(norm.NFC.String(s))
					for end := 2; end < len(runes); end++ {
						some := string(runes[:end])
						if r := runes[end-1]; len(letters(some)) < 2 ||
							!unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) {
							continue
						}
						queries = append(queries, some+"*")
						if s == word {
							queries = append(queries, norm.NFD.String(some)+"*", "zulu "+some+"*", some+"* -xylo*")
						}
					}
					for _, q := range queries {
						found, err := t.find(q)
						if err != nil {
							t.Errorf("%s, written %+q: %v", word, q, err)
						}
						for i := range written {
							if !slices.Contains(found, fmt.Sprint(n+i)) {
								t.Errorf("%s, written %+q, does not find %+q", word, q, all[n+i])
							}
						}
					}
				}
				n += len(written)
			}
		})
	}
}

// letters returns those of a text.
func letters(text string) (all []rune) {
	for _, r := range norm.NFC.String(text) {
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			all = append(all, r)
		}
	}
	return all
}

// TestWhatIsTheSameWord: beside what is written otherwise, what is found by a word, and what is another one.
func TestWhatIsTheSameWord(t *testing.T) {
	const none = ""
	for _, c := range []struct {
		language string
		texts    []string
		finds    map[string]string
	}{
		{"", []string{"café", "cafe", "елка", "ёлка", "Straße", "strasse", "йод", "иод"}, map[string]string{
			"cafe": "0 1", "CAFÉ": "0 1", "caf*": "0 1", "елка": "2 3", "Ёл*": "2 3", "STRASSE": "4 5", "straẞe": "4 5",
			"йод": "6", "иод": "7",
		}},
		{"", []string{"\u212bngström \u2126", "ångström ω", "ﬁnal ﬀ", "Ǆ", "ǅ", "ǆ", "ㄱ Ⅷ", "٢٠٢٤", "ﾃｽﾄ", "かき", "がき",
			"हिन्दी", "हन्द", "ภาษาไทย", "a\u00adb\u200cc", "ŉ Dag", "'n dag", "५ 𞥕 𑁫"}, map[string]string{
			"angstrom": "0 1", "Ω": "0 1", "final": "2", "ff": "2", "DŽ": "3 4 5", "dž": "3 4 5", "dz": "3 4 5",
			"VIII": "6", "2024": "7", "20*": "7", "テスト": "8", "かき": "9", "がき": "10", "हिन्दी": "11", "हन्द": "12",
			"ไทย": "13", "ภาษา": "13", "abc": "14", "ŉ dag": "15 16", "’n": "15 16", "5": "17", `"५ 5 5"`: "17",
			"ΟΔΟΣ": none,
		}},
		{"", []string{"ΟΔΥΣΣΕΥΣ", "Ὀδυσσεύς", "οδυσσευσ"},
			map[string]string{"οδυσσευς": "0 1 2", "ΟΔΥΣΣΕΎΣ": "0 1 2", "οδυσσευ*": "0 1 2"}},
		{"", []string{"‘white whale’", "“white” whale", "whale–white"}, map[string]string{"“white whale”": "0 1",
			"＂white whale＂": "0 1", "«whale white»": "2", "whale ” white": "0 1 2", "„white whale“": "0 1",
			"whale－white": "2", "wha＊": "0 1 2"}},
		{"de", []string{"Müller", "Mueller", "Muller", "schön", "schon", "für Uber",
			"Aufgabe"}, map[string]string{"muller": "0 1 2", "müller": "0 1 2", "Mueller": "0 1 2", "Muel*": "0 1 2",
			"Mül*": "0 1 2", "schoen": "3 4", "fur uber": "5", "Aufgaben*": "6"}},
		{"sv", []string{"rå", "ra", "smörgås", "smorgas", "idé", "kärlek", "kærlek"}, map[string]string{"rå": "0",
			"ra": "1", "smörgås": "2", "smorgas": "3", "ide": "4", "kærlek": "5 6", "kärl*": "5 6"}},
		{"da", []string{"smörrebröd", "smørrebrød", "bår", "bar"},
			map[string]string{"smørrebrød": "0 1", "smör*": "0 1", "bår": "2", "bar": "3"}},
		{"es", []string{"año", "ano", "corazón", "también vive", "él"}, map[string]string{"año": "0", "ano": "1",
			"corazon": "2", "CORAZ*": "2", "tambien vive": "3", "también vive": "3",
			"también": "q: has no word to find"}},
		{"fr", []string{"l'avion", "L’AVION", "avion", "d'Avignon", "la même chose",
			"aujourd'hui"}, map[string]string{"avion": "0 1 2", "l'avion": "0 1 2", "d’avion": "0 1 2",
			"l'av*": "0 1 2 3", "l'a*": "0 1", "meme chose": "4", "même chose": "4", "hui": "5", "aujourd’hui": "5"}},
		{"it", []string{"dell'università", "universita"},
			map[string]string{"università": "0 1", "nell'UNIVERSITA": "0 1", "dell'un*": "0 1"}},
		{"tr", []string{"İSTANBUL", "istanbul", "IŞIK", "ışık", "isik", "Ankara'da", "Ankara’nın", "O'Brien"},
			map[string]string{
				"İstanbul": "0 1", "ISTANBUL": "0 1", "ıstanbul": "0 1", "ışık": "2 3 4", "IŞI*": "2 3 4",
				"KIRK": "q: has no word to find", "Ankara": "5 6", "Ankara'ya": "5 6", "O’Brien": "7", "brien": "7",
			}},
		{"ro", []string{"ţară", "țară", "tara", "şi"},
			map[string]string{"țară": "0 1 2", "TARA": "0 1 2", "ța*": "0 1 2", "și": "q: has no word to find"}},
		{"ru", []string{"ёлками", "елка", "ещё"}, map[string]string{"ёлка": "0 1", "ЕЛКАМИ": "0 1",
			"ещё": "q: has no word to find", "еще": "q: has no word to find"}},
		{"ar", []string{"أحمد", "احمد", "الكتاب", "كُتُب"},
			map[string]string{"احمد": "0 1", "أح*": "0 1", "كتاب": "2", "كتا*": "2", "كتب": "3"}},
		{"en", []string{"running", "runs", "the runway", "they don't", "happiness", "O'Brien's hat", "résumé"},
			map[string]string{
				"running*": "0 1", "runni*": "0", "run*": "0 1 2", "don’t": "q: has no word to find", "happines*": "4",
				"OBRIEN": none, "o’brien": "5", "brien": "5", "obr*": none, "o'br*": "5", "resume": "6", "RESUMES": "6",
			}},
		{"cjk", []string{"吾輩は猫である", "猫", "犬と猫の話", "犬", "ｱｲｽﾃｨｰ", "학교에서", "iPhone発売"}, map[string]string{
			"猫": "0 1 2", "猫*": "0 1 2", "は猫": "0", `"は猫で"`: "0", "猫は": none, "吾輩": "0", "犬 猫": "2", "犬": "2 3",
			"-猫 犬": "3", "アイスティー": "4", "アイ*": "4", "학교": "5", "iphone": "6", "iPh*": "6", "iphone発売": "6",
			"発売iph*": "6", "-猫iph* 犬": `q: "猫iph"* is several words; give the beginning of one`,
		}},
	} {
		eachWay(t, c.language, c.texts, func(t texts) {
			for q, want := range c.finds {
				t.finds(q, want)
			}
		})
	}
}

// TestWordsThatAreJoinedAreFoundByTheirParts: an address, the name of a file, a number, a path, a word with a hyphen.
func TestWordsThatAreJoinedAreFoundByTheirParts(t *testing.T) {
	of := []string{"first.last@example.com", "report_final.pdf", "1111,2222",
		"https://www.example.org/docs/a_page?id=7", "white-whale", "1.2.30", "C++ and C#", "O’Brien",
		"src/main/Whale.java", "white shirt, whale"}
	for _, language := range []string{"", "en", "de", "fr", "tr"} {
		eachWay(t, language, of, func(t texts) {
			for q, want := range map[string]string{
				"first": "0", "last": "0", "example": "0 3", "com": "0", "first.last": "0",
				"First.Last@Example.com": "0", `"last example"`: "0", "last.first": "", "first.la*": "0",
				"first.l*": "0", "last@exa*": "0", "last@e*": "0",
				"report": "1", "final": "1", "pdf": "1", "final.pdf": "1", "report_final.pdf": "1", "report_f*": "1",
				"report_final.p*": "1", "report-final": "1", "final_report": "",
				"1111": "2", "2222": "2", "1111,2222": "2", "1111,2*": "2", "11*": "2",
				"docs": "3", "page": "3", "www.example.org/docs": "3", "https://www.exa*": "3", "docs/a_p*": "3",
				"example.org": "3",
				"whale":       "4 8 9", "white-whale": "4", "white-wha*": "4", "white-w*": "4", "white–wha*": "4",
				"-white-wha* white": "9", "whale white": "4 9", "white whale": "4 9", `"white whale"`: "4",
				"1.2.30": "5", "30": "5", "1.2.3*": "5", "1.2": "5", "1.*": "5", "1.3": "",
				"C++": "6", "C#": "6", "c*": `q: "c"* is the beginning of too many words; give at least 2 characters`,
				"c+*": "6", "O'Brien": "7", "brien": "7", "O'Bri*": "7", "o’b*": "7", "o’*": "7",
				"main/whale": "8", "whale.java": "8", "main/Wha*": "8", "java": "8",
			} {
				if language == "fr" && strings.ContainsAny(q, "+#") {
					continue // c is a word that French leaves out
				}
				t.finds(q, want)
			}
		})
	}
}

// TestWithoutAWordNothingIsSearched: what has no word, or none but those that the language leaves out, is an error.
func TestWithoutAWordNothingIsSearched(t *testing.T) {
	eachWay(t, "en", []string{"the whale"}, func(t texts) {
		for _, q := range []string{"", " ", "-", "--", "---", "...", "🍕", "🍕*", "the", "THE", `"the"`, "-the", "-whale",
			`-"white whale"`, "the -whale", `""`, `"" ""`, "*", "(*", "don't", "the of", "\u00ad", "\u200b", "'",
			"-*"} {
			if _, err := t.find(q); !errors.Is(err, errs.Invalid) || err.Error() != "q: has no word to find" {
				t.Errorf("%q: %v", q, err)
			}
		}
		t.finds("the whale", "0")
		t.finds("whale -the 🍕", "0")
	})
}

// TestDigitsOfAllScripts: Unicode has them in tens, from zero on.
func TestDigitsOfAllScripts(t *testing.T) {
	n := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !unicode.Is(unicode.Nd, r) {
			continue
		}
		if got, want := digitOf(r), rune('0'+n%10); got != want {
			t.Errorf("%U is %c, expected %c", r, got, want)
		}
		n++
	}
}

// FuzzWords: no text has a language fail, and none has words that are longer than counts.
func FuzzWords(f *testing.F) {
	for _, text := range []string{"", "İ", "l'", "’s", "'", "a'b'c", "ǰ", "\u0345", strings.Repeat("ΐ", 300),
		strings.Repeat("a.", 300), strings.Repeat("e\u0301", 300), "猫" + strings.Repeat("\u20dd", 1000), "한글 カナ ー",
		"\u0e33\u0e33", "ﷺ", "\xff", "1,2_3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name := range specs {
			for _, as := range []string{asWords, asBeginnings, asAllBeginnings} {
				l, err := languageOf(name)
				if err != nil {
					t.Fatal(err)
				}
				for _, token := range (analyzer{l, as}).Analyze([]byte(text)) {
					if n := len([]rune(string(token.Term))); n == 0 || n > 3*maxWord || token.Position < 1 {
						t.Errorf("%s%s of %q: %q at %d", name, as, text, token.Term, token.Position)
					}
				}
			}
		}
	})
}

// TestALongTextHasFewTerms: what an index has of a text grows with the text, however its words are joined.
func TestALongTextHasFewTerms(t *testing.T) {
	for name, text := range map[string]string{
		"joined":    strings.Repeat("a.", 5000),
		"letters":   joinedLetters(3000, 0),
		"runs":      joinedLetters(3000, maxParts),
		"long":      strings.Repeat("a", 10_000),
		"folded":    strings.Repeat("ΐ", 5000),
		"expanded":  strings.Repeat("ﷺ", 3000),
		"marks":     "a" + strings.Repeat("\u0301", 5000),
		"marked":    "猫" + strings.Repeat("\u20dd", 5000),
		"joiners":   "a" + strings.Repeat("\u200d", 5000) + "b" + strings.Repeat("\u034f", 5000),
		"invalid":   strings.Repeat("\xff", 5000) + strings.Repeat("\xe3\x81", 2000),
		"addresses": strings.Repeat("https://www.example.org/a/b/c?d=e&f=g ", 250),
	} {
		for _, language := range []string{"", "en", "fr", "cjk"} {
			l, err := languageOf(language)
			if err != nil {
				t.Fatal(err)
			}
			for _, as := range []string{asWords, asBeginnings, asAllBeginnings} {
				if n, size := len((analyzer{l, as}).Analyze([]byte(text))), len(normalize(text)); n > 5*size ||
					n > size && as != asAllBeginnings {
					t.Errorf("%s, %s%s: %d terms of %d bytes of text", name, language, as, n, len(text))
				}
			}
		}
	}
}

// TestATextGrowsByLittle: a ligature of eighteen letters takes the memory of so many.
func TestATextGrowsByLittle(t *testing.T) {
	const ligature = "ﷺ"
	for _, n := range []int{1, 100, 1 << 14, 1 << 16} {
		text := strings.Repeat(ligature, n)
		whole, most := n*len(norm.NFKC.String(ligature)), maxGrowth*max(len(text), maxSmall)
		if got := len(normalize(text)); got > most || got < min(whole, most)-utf8.UTFMax {
			t.Errorf("%d bytes of %d are left of %d", got, whole, len(text))
		}
	}
}

// joinedLetters are letters in no order, with a space after some.
func joinedLetters(n, some int) string {
	var b strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		b.WriteString(string(rune('a'+random.IntN(26))) + ".")
		if some > 0 && i%some == 0 {
			b.WriteString(" ")
		}
	}
	return b.String()
}

// TestPlainTextIsDividedByTheRulesOfUnicode: what is divided without them is what they divide.
func TestPlainTextIsDividedByTheRulesOfUnicode(t *testing.T) {
	parts := []string{"a", "Word", "x9", "12", " ", " ", " ", "\n", "\r\n", ".", ",", ":", ";", "'", `"`, "_", "-", "/",
		"@", "\t", "\x00", "é", "e\u0301", "\u0301", "猫", "カナ", "ไทย", "한", "ש", "ß", "…", "\u00a0", "\u3000", "·", "٢",
		"🇩🇪", "🍕", "\ufffd", "\u200b", "’"}
	random := rand.New(rand.NewPCG(1, 2))
	for name := range specs {
		l, err := languageOf(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 3000 {
			text := ""
			for range random.IntN(12) {
				text += parts[random.IntN(len(parts))]
			}
			by := division{language: l}
			by.segments(text)
			by.join()
			got, want := l.pieces(text), by.all
			same := func(a, b word) bool {
				return a.written == b.written && a.next == b.next && a.alone == b.alone && a.touches == b.touches
			}
			if !slices.EqualFunc(got, want, same) {
				t.Fatalf("%s, %q:\n%+v\n%+v", name, text, got, want)
			}
			for i := 1; i < len(got); i++ {
				if (got[i].segment == got[i-1].segment) != (want[i].segment == want[i-1].segment) {
					t.Fatalf("%s, %q: segments\n%+v\n%+v", name, text, got, want)
				}
			}
		}
	}
}
