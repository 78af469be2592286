package console

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

func TestPlacesAreNamedAsInFilters(t *testing.T) {
	t.Parallel()
	for pointer, want := range map[string]string{
		"/password": "password", "/address/city": "address.city", "/tags/2": "tags[2]", "/a/0/b-c": "a[0].b-c",
		"/größe": "größe", "/0": "[0]",
		"/a~1b": `["a/b"]`, "/m~0n": `["m~n"]`, "/a.b/c": `["a.b"].c`, "/x/": `x[""]`, "/a b": `["a b"]`,
		"/01": `["01"]`, "/\u202e": `["\u202e"]`,
	} {
		if got := field(pointer); got != want {
			t.Errorf("%s is %s, want %s", pointer, got, want)
		}
	}
}

// Whatever page shows what is wrong shows no pointer, which is for programs.
func TestNoPageShowsAPointer(t *testing.T) {
	t.Parallel()
	shown := regexp.MustCompile(`{{with \.Pointer}}<code>{{field \.}}</code> {{end}}`)
	pages := 0
	err := fs.WalkDir(templates, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(templates, path)
		if rest := shown.ReplaceAllString(string(text), ""); strings.Contains(rest, "Pointer") {
			t.Errorf("%s shows a pointer as it is", path)
		} else if len(rest) < len(text) {
			pages++
		}
		return err
	})
	if err != nil || pages < 3 {
		t.Errorf("%d pages, %v", pages, err)
	}
}
