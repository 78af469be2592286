package files

import (
	"errors"
	"mime"
	"strings"
	"testing"

	"belfry/pkg/errs"
)

func TestGivenName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ disposition, filename, want string }{
		{"", "", ""},
		{`attachment; filename=plain.txt`, "", "plain.txt"},
		{`attachment; filename="with space.txt"`, "", "with space.txt"},
		{`form-data; name="f"; filename="a \"quoted\" name.txt"`, "", `a "quoted" name.txt`},
		{`attachment; filename*=UTF-8''na%C3%AFve%20caf%C3%A9.txt`, "", "naïve café.txt"},
		{`attachment; filename="fallback.txt"; filename*=UTF-8''%E2%82%AC.txt`, "", "€.txt"},
		{`attachment; filename*=utf-8'en'x.txt; filename="y.txt"`, "", "x.txt"},
		{`attachment; filename*=us-ascii''x%2Etxt`, "", "x.txt"},
		{`attachment; FileName* = UTF-8''%E2%82%AC.txt; filename=y.txt`, "", "€.txt"},
		{`attachment; filename="a;filename*=KOI8-R''%C1.txt"`, "", "a;filename*=KOI8-R''%C1.txt"},
		{`attachment; filename="a\";filename*=x"`, "", `a";filename*=x`},
		{`attachment; filename*=UTF-8''; filename="y.txt"`, "other.txt", "other.txt"},
		{`attachment; filename*0*=UTF-8''%E2%82; filename*1*=%AC; filename*2=" 100%.txt"`, "", "€ 100%.txt"},
		{`attachment; filename*0=50%; filename*1=.txt`, "", "50%.txt"},
		{`attachment; filename="größe.txt"`, "", "größe.txt"},
		{"attachment; filename=\"gr\xf6\xdfe.txt\"", "", "größe.txt"}, // ISO-8859-1
		{`attachment; filename="C:\Users\me\x.txt"`, "", `C:\Users\me\x.txt`},
		{`attachment; filename="../../etc/passwd"`, "", "../../etc/passwd"},
		{`attachment; filename=""`, "other.txt", "other.txt"},
		{`attachment`, "other.txt", "other.txt"},
		{`attachment; filename=first.txt`, "second.txt", "first.txt"},
		{"", "percent%20encoded%20%E2%82%AC.txt", "percent encoded €.txt"},
		{"", "..%2f..%2fx.txt", "../../x.txt"},
		{"", "50%.txt", "50%.txt"},
		{"", "größe.txt", "größe.txt"},
		{"", "gr\xf6\xdfe.txt", "größe.txt"},
	} {
		header := map[string][]string{}
		if c.disposition != "" {
			header["Content-Disposition"] = []string{c.disposition}
		}
		if c.filename != "" {
			header["X-Filename"] = []string{c.filename}
		}
		if got, err := fileName(header); got != c.want || err != nil {
			t.Errorf("%q, %q: %q, %v; want %q", c.disposition, c.filename, got, err, c.want)
		}
	}
	for _, malformed := range []string{
		"", ";;;", `attachment; filename="x`, `attachment; filename=a b`, `attachment; filename=a; filename=b`,
		// another charset than UTF-8
		`attachment; filename*=KOI8-R''%C1.txt; filename="y.txt"`, `attachment; filename*=ISO-8859-1''gr%F6%DFe.txt`,
		`attachment; filename*=UTF-8''%zz.txt; filename="y.txt"`,
		`attachment; filename="y.txt"; filename*=UTF-8''%E2%82`,
		`attachment; filename*=UTF-8''100%`, `attachment; filename*=UTF-8''%FF.txt`, `attachment; filename*=x.txt`,
		`attachment; filename*=UTF-8'x.txt`,
		`attachment; filename*0*=UTF-8''%zz; filename*1=b.txt`, `attachment; filename*0*=UTF-8''a; filename*1*=%zz`,
		`attachment; filename*0*=x.txt`,
		`attachment; filename*0=x; filename*1*=%C3%AF`, `attachment; filename="y.txt"; filename*0*=KOI8-R''%C1.txt`,
		`attachment; filename*=''x.txt`, `attachment; filename*="x.txt"`, `attachment; FILENAME*=KOI8-R''%C1.txt`,
	} {
		if got, err := fileName(map[string][]string{"Content-Disposition": {malformed}}); !errors.Is(err,
			errs.Invalid) {
			t.Errorf("%q: %q, %v", malformed, got, err)
		}
	}
}

func TestDisposition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		inline bool
		name   string
		want   string
	}{
		{false, "", `attachment`},
		{true, "", `inline`},
		{true, "x.png", `inline; filename="x.png"`},
		{false, "two words.txt", `attachment; filename="two words.txt"`},
		{false, "größe €.txt", `attachment; filename="gr__e _.txt"; filename*=UTF-8''gr%C3%B6%C3%9Fe%20%E2%82%AC.txt`},
		{false, `a"b;c%41.txt`, `attachment; filename="a_b;c_41.txt"; filename*=UTF-8''a%22b%3Bc%2541.txt`},
		{false, "x\r\nSet-Cookie: a=b",
			`attachment; filename="x__Set-Cookie: a=b"; filename*=UTF-8''x%0D%0ASet-Cookie%3A%20a%3Db`},
		{false, `=:@'()*+!.txt`, `attachment; filename="=:@'()*+!.txt"`},
	} {
		if got := disposition(c.inline, c.name); got != c.want {
			t.Errorf("%q: %s, want %s", c.name, got, c.want)
		}
	}
}

// Any name is sent as one well-formed header that can be decoded to it.
func FuzzDisposition(f *testing.F) {
	for _, name := range []string{"x.txt", "größe.txt", "../../x", "a\x00b", "\u202etxt.exe", `"\%`, "\xff\xfe",
		strings.Repeat("€", 100)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		value := disposition(false, name)
		for _, c := range value {
			if c < ' ' || c > '~' {
				t.Fatalf("%q: %q", name, value)
			}
		}
		_, params, err := mime.ParseMediaType(value)
		if err != nil || params["filename"] != name {
			t.Errorf("%q: %s says %q (%v)", name, value, params["filename"], err)
		}
	})
}
