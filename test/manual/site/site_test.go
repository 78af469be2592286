package site

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/api/console/manual"
)

// build makes a site of pages, by their files below docs, and returns what is wrong with them.
func build(t *testing.T, pages map[string]string) (map[string]string, string) {
	t.Helper()
	root := t.TempDir()
	for name, text := range pages {
		file := filepath.Join(root, "docs", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := Build(root, true)
	if files == nil {
		t.Fatal(err)
	}
	made := map[string]string{}
	for name, content := range files {
		made[name] = string(content)
	}
	if err != nil {
		return made, err.Error()
	}
	return made, ""
}

func TestPagesAreRendered(t *testing.T) {
	made, wrong := build(t, map[string]string{
		"README.md": "# Contents\n\n## Guides\n\n- [Log in](guides/log-in.md): text\n\n## Internals\n\n- " +
			"[Mapping](mapping.md)\n",
		"mapping.md":    "# Mapping\n\nBack to the [guide](guides/log-in.md#a--b-c) and [all](README.md).\n",
		"adr/0001-a.md": "# Decided\n\nWhy: [mapping](../mapping.md).\n",
		"images/a.svg":  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><style>:root{color:red} .x{fill:url(#g)}</style><g id="g" style="fill:#fff;stroke: red"/><use href="#g"/><text>a &lt; b</text></svg>`,
		"images/b.png":  "",
		"../go.mod":     "",
		"guides/log-in.md": "# Log *in*\n\nSee [mapping](../mapping.md), [here](#a--b-c), " +
			"[out](https://example.org/x), [the module](../../go.mod) and [`go.mod`](../../go.mod).\n\n## A & " +
			"`b` c!\n\n" +
			"| a | b |\n|---|--:|\n| 1 | `x<y` |\n\n```sh\ncurl <x>\n```\n\n## Same\n\n## Same\n\n![Drawn " +
			"\"so\"](../images/a.svg)\n\n![Screen](../images/b.png)\n\n<!-- secret -->\n",
	})
	if wrong != "" {
		t.Errorf("wrong: %s", wrong)
	}
	want := []string{"adr.0001-a.gz", "contents.gz", "guides.log-in.gz", "index.gz", "internals.mapping.gz",
		"pictures.gz", "words.gz"}
	if names := slices.Sorted(maps.Keys(made)); !slices.Equal(names, want) {
		t.Errorf("the files are %q", names)
	}
	page := made[manual.FileName("guides/log-in")]
	for _, part := range []string{
		`<h1 id="log-in">Log <em>in</em></h1>`, `<h2 id="a--b-c">A &amp; <code>b</code> c!`, `<h2 id="same">`,
		`<h2 id="same-1">`,
		`<a href="../internals/mapping">mapping</a>`, `<a href="#a--b-c">here</a>`,
		`<a href="https://example.org/x">out</a>`,
		"the module (<code>go.mod</code>) and <code>go.mod</code>.", `<div class="scroll" tabindex="0"><table>`,
		`<td align="right"><code>x&lt;y</code></td>`,
		`<pre tabindex="0"><code class="language-sh">curl &lt;x&gt;`, `<em class="picture">Picture: Screen</em>`,
		`<span class="figure picture-a"><svg viewBox="0 0 9 9" role="img" aria-label="Drawn &#34;so&#34;">`,
		`<g id="a-g" fill="#fff" stroke="red">`, `<use href="#a-g">`, "a &lt; b",
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %s:\n%s", part, page)
		}
	}
	if strings.Contains(page, "secret") {
		t.Error("the page has a comment")
	}
	if styles := made["pictures.gz"]; !strings.Contains(styles, ".picture-a {") ||
		!strings.Contains(styles, "url(#a-g)") || strings.Contains(styles, ":root") {
		t.Errorf("the style sheet of pictures is %s", styles)
	}
	if mapping := made[manual.FileName("internals/mapping")]; !strings.Contains(mapping,
		`href="../guides/log-in#a--b-c"`) || !strings.Contains(mapping, `href="../"`) {
		t.Errorf("links from internals: %s", mapping)
	}
	if contents := made["contents.gz"]; !strings.Contains(contents,
		`{"title":"Decisions","internal":true,"pages":[{"url":"adr/0001-a","title":"Decided","label":"Decided"`) {
		t.Errorf("the contents are %s", contents)
	}
}

func TestWrongPagesAreReported(t *testing.T) {
	for wrong, page := range map[string]string{
		"does not begin with a title":             "Text\n\n# Title\n",
		"none.md is not a page":                   "# Title\n\n[x](none.md)\n",
		"has no heading for #none":                "# Title\n\n[x](#none)\n",
		"../none.go does not exist":               "# Title\n\n[x](../none.go)\n",
		"HTML that the site does not permit":      "# Title\n\n<script>alert(1)</script>\n",
		"it has the element script":               "# Title\n\n![x](bad.svg)\n",
		"the picture docs/none.svg: open":         "# Title\n\n![x](none.svg)\n",
		"HTML that the site does not permit: <im": "# Title\n\nText <img src=x>\n",
	} {
		_, got := build(t, map[string]string{"README.md": "# Contents\n\n## Guides\n\n[Page](page.md)\n",
			"page.md": page, "bad.svg": "<svg><script>1</script></svg>"})
		if wrong = strings.Replace(wrong, "docs/none.svg", "none.svg", 1); !strings.Contains(got, wrong) {
			t.Errorf("%q is reported as %q, not as %q", page, got, wrong)
		}
	}
	_, got := build(t, map[string]string{"README.md": "# Contents\n\n## Guides\n\n[Page](page.md) [Again](page.md)\n",
		"page.md": "# Page\n", "other.md": "# Other\n"})
	if !strings.Contains(got, "other.md is not listed") || !strings.Contains(got, "page.md is listed twice") {
		t.Errorf("pages that are not listed: %s", got)
	}
}

func TestTheSamePagesMakeTheSameBytes(t *testing.T) {
	const root = "../../.."
	first, _ := Build(root, true)
	second, _ := Build(root, true)
	if len(first) < 50 || len(first) != len(second) {
		t.Fatalf("%d and %d files", len(first), len(second))
	}
	for name, content := range first {
		if string(Compress(content)) != string(Compress(second[name])) {
			t.Errorf("%s differs", name)
		}
	}
}
