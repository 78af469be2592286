package importer

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// items splits an input to its end. It does so one byte at a time too, so that every
// buffer's end is met: the result must be the same.
func items(input string) (all []string, places []Position, err error) {
	all, places, err = itemsOf(strings.NewReader(input))
	bytewise, bytewisePlaces, bytewiseErr := itemsOf(iotest.OneByteReader(strings.NewReader(input)))
	if !slices.Equal(all, bytewise) || !slices.Equal(places, bytewisePlaces) ||
		fmt.Sprint(err) != fmt.Sprint(bytewiseErr) {
		return nil, nil, fmt.Errorf("%q at %v and %w, one byte at a time %q at %v and %w", all, places, err, bytewise,
			bytewisePlaces, bytewiseErr)
	}
	return all, places, err
}

func itemsOf(input io.Reader) (all []string, places []Position, err error) {
	s, err := split(input)
	for err == nil {
		var it item
		if it, err = s.next(); err == nil {
			all, places = append(all, string(it.text)), append(places, it.at)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, places, err
}

func TestSplit(t *testing.T) {
	escapes := strings.Repeat(`a\"b\\`, maxPlain)
	for name, c := range map[string]struct{ input, want string }{
		"nothing":               {"", ""},
		"space alone":           {" \n\n", ""},
		"lines":                 {"{\"a\":1}\n{\"b\":2}\n", `1:1 {"a":1} | 2:1 {"b":2}`},
		"no newline at the end": {"{\"a\":1}\n{\"b\":2}", `1:1 {"a":1} | 2:1 {"b":2}`},
		"blank lines and CRLF":  {"\r\n{\"a\":1}\r\n\r\n  {\"b\":2}  \r\n", `2:1 {"a":1} | 4:1   {"b":2}`},
		"a byte order mark":     {"\ufeff{\"a\":1}", `1:1 {"a":1}`},
		"a bad line between":    {"{\"a\":1}\n{\"b\":\n{\"c\":3}\n", `1:1 {"a":1} | 2:1 {"b": | 3:1 {"c":3}`},
		"an empty array":        {" [ ] \n", ""},
		"an array": {"[{\"a\":1}, {\"b\":[2,{}]}\n,\n {\"c\":3}]",
			`1:2 {"a":1} | 1:11 {"b":[2,{}]} | 3:2 {"c":3}`},
		"a long string": {`[{"a":"` + escapes + `"}, 1]`,
			`1:2 {"a":"` + escapes + `"} | 1:` + fmt.Sprint(len(escapes)+12) + ` 1`},
		"brackets in strings":        {`[{"a":"]}\"[{"},{"\\":","}]`, `1:2 {"a":"]}\"[{"} | 1:17 {"\\":","}`},
		"what is no object":          {`[1 ,"x",null,[]]`, `1:2 1 | 1:5 "x" | 1:9 null | 1:14 []`},
		"columns count characters":   {`[{"é":"日本"},{}]`, `1:2 {"é":"日本"} | 1:13 {}`},
		"a malformed element passes": {`[{"a":},{"b" 2}]`, `1:2 {"a":} | 1:9 {"b" 2}`},
	} {
		t.Run(name, func(t *testing.T) {
			all, places, err := items(c.input)
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range places {
				all[i] = fmt.Sprintf("%d:%d %s", p.Line, p.Column, all[i])
			}
			if got := strings.Join(all, " | "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestSplitSaysWhereAnInputIsBad(t *testing.T) {
	for name, c := range map[string]struct {
		input        string
		before       int
		line, column int64
		message      string
	}{
		"neither form":             {"\n  hello", 0, 2, 3, "not with 'h'"},
		"UTF-16":                   {"\xff\xfe[\x00", 0, 1, 1, "UTF-16"},
		"gzip":                     {"\x1f\x8b\x08", 0, 1, 1, "compressed"},
		"cut off in an element":    {"[{},\n{\"a\":", 1, 2, 6, "cut off"},
		"cut off between elements": {"[{},\n", 1, 2, 1, "cut off"},
		"cut off before the end":   {"[{}", 1, 1, 4, "cut off"},
		"a comma too many":         {"[{},]", 1, 1, 5, "not ']'"},
		"a comma too early":        {"[,{}]", 0, 1, 2, "not ','"},
		"no comma":                 {"[{}\n {}]", 1, 2, 2, "a comma or ]"},
		"wrong bracket":            {"[{\"a\":[1}]", 0, 1, 9, "'}' closes nothing"},
		"a missing quote":          {"[{\"a\":\"x},\n{\"b\":1}]", 0, 1, 11, "within a string"},
		"something after it":       {"[{}]\n[", 1, 2, 1, "after the array"},
		"nested without end":       {"[" + strings.Repeat("[", 2*maxNesting), 0, 1, maxNesting + 2, "nested"},
	} {
		t.Run(name, func(t *testing.T) {
			all, _, err := items(c.input)
			var bad *SyntaxError
			if !errors.As(err, &bad) {
				t.Fatalf("got %v, %v", all, err)
			}
			if len(all) != c.before || bad.Line != c.line || bad.Column != c.column ||
				!strings.Contains(bad.Message, c.message) {
				t.Errorf("after %d items: %v; want after %d at %d:%d: %s", len(all), bad, c.before, c.line, c.column,
					c.message)
			}
		})
	}
}

func TestSplitTellsAFailingReaderFromAnEnd(t *testing.T) {
	broken := errors.New("the disk has failed")
	for _, input := range []string{"", "{}\n{", "[{},", "[{}]"} {
		s, err := split(io.MultiReader(strings.NewReader(input), iotest.ErrReader(broken)))
		for err == nil {
			_, err = s.next()
		}
		if !errors.Is(err, broken) {
			t.Errorf("%q: %v", input, err)
		}
	}
}

// An item that is too long is one failure, and what follows is found.
func TestSplitPassesOverWhatIsTooLong(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", maxItem) + `"}`
	for _, input := range []string{"{}\n" + long + "\n{}\n", "[{}," + long + ",{}]"} {
		s, err := split(strings.NewReader(input))
		if err != nil {
			t.Fatal(err)
		}
		for n := int64(1); n <= 3; n++ {
			it, err := s.next()
			if err != nil || it.n != n || it.long != (n == 2) || len(it.text) > 2 {
				t.Fatalf("item %d: n=%d long=%v %d bytes, %v", n, it.n, it.long, len(it.text), err)
			}
		}
		if _, err := s.next(); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
}

func TestParseSaysWhereAnObjectIsMalformed(t *testing.T) {
	for name, c := range map[string]struct{ input, want string }{
		"syntax":        {"[{},\n{\"é\": x}]", "2:7: malformed JSON: invalid character 'x' at start of value in /é"},
		"over lines":    {"[{\"a\":1,\n \"b\" 2}]", "2:6: malformed JSON"},
		"cut off":       {"{}\n{\"a\":\n", "2:6: malformed JSON: the object ends too early; in JSON lines"},
		"two on a line": {"{}\n{} {}\n", "2:4: malformed JSON: something follows the object"},
		"a name twice":  {"{\"a\":1,\"a\":2}", "1:8: malformed JSON: duplicate object member name in /a"},
		"invalid UTF-8": {"{\"a\":\"\xff\"}", "1:7: malformed JSON: invalid UTF-8"},
		"NUL":           {"{\"a\":\"\\u0000\"}", "1:1: a NUL character"},
		"not an object": {"[17]", "1:2: a JSON object is expected, not a number"},
		"nested deeply": {strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65),
			"1:1: nested more than 64 levels"},
		"colors in it": {"{\"\x1b[31m\":1}", "1:3: malformed JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := split(strings.NewReader(c.input))
			if err != nil {
				t.Fatal(err)
			}
			for {
				it, err := s.next()
				if err != nil {
					t.Fatalf("every object is good: %v", err)
				}
				o, failure := it.parse()
				if failure == nil && o != nil {
					continue
				}
				if got := failure.String(); !strings.HasPrefix(got, c.want) || strings.Contains(got, "\x1b") {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				return
			}
		})
	}
}

func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"", "[]", "[{},{\"a\":[1]}]", "{}\n{\n", "[\"\\\"\"]", "\ufeff{}", "[1,\n\"é\"",
		"[}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) {
		all, places, err := items(input)
		again, _, errAgain := items(input)
		if len(all) != len(again) || fmt.Sprint(err) != fmt.Sprint(errAgain) {
			t.Fatal("the same input is split in two ways")
		}
		rest, lines := input, int64(strings.Count(input, "\n"))+1
		for i, text := range all {
			before, after, found := strings.Cut(rest, text)
			if text == "" || !found {
				t.Fatalf("item %d %q is not in the rest of the input", i, text)
			}
			if lost := strings.Trim(before, "\ufeff[, \t\r\n"); lost != "" {
				t.Fatalf("%q before item %d is lost", lost, i)
			}
			if places[i].Line < 1 || places[i].Line > lines || places[i].Column < 1 {
				t.Fatalf("item %d is nowhere: %v", i, places[i])
			}
			rest = after
		}
	})
}
