package config

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"belfry/config/yamltext"
)

func TestInvalidFilesAreRefused(t *testing.T) {
	deep := func(levels int) string {
		return "x: " + strings.Repeat("[", levels) + strings.Repeat("]", levels) + "\n"
	}
	checkInvalid(t, []invalidCase{
		{"not UTF-8", "data: x\nlog: {level: caf\xe9}\n",
			[]string{"2: the byte 0xe9 is not UTF-8; expected text in UTF-8"}},
		{"UTF-16", "\xff\xfed\x00", []string{"1: the byte 0xff is not UTF-8; expected text in UTF-8"}},
		{"a NUL", "data: x\n\n\x00",
			[]string{"3: the control character U+0000 is not allowed; expected text in UTF-8"}},
		{"an escape", "data: \x1b[0m",
			[]string{"1: the control character U+001B is not allowed; expected text in UTF-8"}},
		{"larger than any configuration", strings.Repeat("# nothing\n", 105_000),
			[]string{" is larger than 1024 KiB, the limit of a configuration"}},
		{"deep", deep(33), []string{" is nested deeper than 32 levels"}},
		{"very deep", deep(20_000), []string{"1: is not valid YAML: exceeded max depth of 10000"}},
		{"wide", "x: [" + strings.Repeat("a,", 30_000) + "]\n", []string{
			" has more than 20000 values; an alias counts each time it is used"}},
		{"an anchor in itself", "x: &a [*a]\n", []string{" is nested deeper than 32 levels"}},
		{"an alias of nothing", "data: x\nlisten: *port\n", []string{
			"2: is not valid YAML: an alias refers to no anchor (a value that begins with * needs quotes)"}},
		{"an alias bomb", bomb(), []string{" has more than 20000 values; an alias counts each time it is used"}},
	})
}

// bomb returns a few lines that expand to a billion values.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		before := "*a" + strconv.Itoa(i-1)
		b.WriteString("a" + strconv.Itoa(i) + ": &a" + strconv.Itoa(i) + " [" + strings.Repeat(before+", ", 9) +
			before + "]\n")
	}
	return b.String()
}

func TestAliasesReplaceWholeValues(t *testing.T) {
	c := mustParse(t, "stores:\n  A: {policy: &mine {get: user != null}, private: [&p secretly]}\n  B: {policy: "+
		"*mine, private: [*p]}\n")
	equal(t, "policy", c.Stores["B"].Policy,
		Policy{Create: LeftOut, Get: "user != null", Update: LeftOut, Delete: LeftOut})
	equal(t, "private", c.Stores["B"].Private, []string{"secretly"})
}

func TestHugeFileIsNotReadCompletely(t *testing.T) {
	path := filepath.Join(t.TempDir(), "disk.img")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 100<<20); err != nil {
		t.Fatal(err)
	}
	data, err := yamltext.Read(path)
	if err != nil || len(data) != yamltext.MaxFile+1 {
		t.Errorf("read %d bytes, error %v", len(data), err)
	}
	if _, err := Load(path, environment); err == nil ||
		err.Error() != path+": is larger than 1024 KiB, the limit of a configuration" {
		t.Errorf("got %v", err)
	}
}

func TestFolderIsRefused(t *testing.T) {
	if _, err := Load("testdata", environment); err == nil ||
		err.Error() != "testdata: cannot be read: is a directory" {
		t.Errorf("got %v", err)
	}
}

// The limits on size and number of values must bound the work as well: files just
// below them are validated in reasonable time, however the values are arranged.
func TestLargestAllowedFilesAreValidated(t *testing.T) {
	var stores, maps, unknown strings.Builder
	for i := range 4_500 {
		n := strconv.Itoa(i)
		stores.WriteString("  s" + n + ": {backend: none}\n")
		maps.WriteString("      s" + n + ": {key: k}\n")
		unknown.WriteString("key" + n + ": " + n + "\n")
	}
	words := strings.Repeat("word, ", yamltext.MaxFile/6-100)
	for _, text := range []string{
		"stores:\n" + stores.String(), "stores:\n  A:\n    map:\n" + maps.String(), unknown.String(),
		"stores: {A: {private: '" + words + "'}}", "stores: {A: {indexes: ['" + words + "']}}",
		"data: '" + strings.Repeat("${A:-x}", yamltext.MaxFile/8) + strings.Repeat("${", 1000) + "'",
		strings.Repeat("# comment\n", 100_000) + "a: [\n",
	} {
		if _, err := Parse("belfry.yaml", []byte(text), environment); err == nil {
			t.Errorf("accepted: %.40s", text)
		}
	}
}
