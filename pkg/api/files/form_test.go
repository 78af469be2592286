package files

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
)

const fileHead = "Content-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\nContent-Type: text/plain\r\n\r\n"

// parts joins the parts of a form with its boundaries, the last one included.
func parts(all ...string) string {
	return "--b\r\n" + strings.Join(all, "\r\n--b\r\n") + "\r\n--b--\r\n"
}

func fieldPart(name, value string) string {
	return "Content-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value
}

func readForm(body io.Reader) (content string, f *form, err error) {
	f, err = openForm(body, "b")
	if err != nil {
		return "", f, err
	}
	data, err := io.ReadAll(f)
	return string(data), f, err
}

func TestForm(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcde\n", 64<<10) // beyond what a form may have around its file
	for name, c := range map[string]struct{ body, content, fields string }{
		"a file":        {parts(fileHead + "hello"), "hello", `{}`},
		"an empty file": {parts(fileHead), "", `{}`},
		"a large file":  {parts(fileHead+large, fieldPart("a", "1")), large, `{"a":"1"}`},
		"fields around": {parts(fieldPart("a", "1"), fileHead+"hello", fieldPart("b", "zwei\r\n€")), "hello",
			`{"a":"1","b":"zwei\r\n€"}`},
		"preamble, epilogue": {"before\r\n" + parts(fileHead+"hello") + "after", "hello", `{}`},
		"no line at the end": {strings.TrimSuffix(parts(fileHead+"hello"), "\r\n"), "hello", `{}`},
		"boundaries within":  {parts(fileHead + " --b\r\n-b--\r\n--bb\r\n--"), " --b\r\n-b--\r\n--bb\r\n--", `{}`},
		"an empty control": {parts("Content-Disposition: form-data; name=\"g\"; filename=\"\"\r\n\r\n",
			fileHead+"hello"), "hello", `{}`},
		"sent as binary": {parts("Content-Transfer-Encoding: BINARY\r\n" + fileHead + "h=3D"), "h=3D", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, body := range []io.Reader{strings.NewReader(c.body), iotest.HalfReader(strings.NewReader(c.body)),
				iotest.DataErrReader(strings.NewReader(c.body))} {
				content, f, err := readForm(body)
				if err != nil || content != c.content {
					t.Fatalf("%d bytes, %v", len(content), err)
				}
				if got := string(f.fields.Encode()); got != c.fields {
					t.Errorf("fields %s, want %s", got, c.fields)
				}
				if n, err := f.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
					t.Errorf("after the end: %d, %v", n, err)
				}
			}
		})
	}
}

func TestBadForms(t *testing.T) {
	t.Parallel()
	many := make([]string, maxFields+1)
	for i := range many {
		many[i] = fieldPart(fmt.Sprint("f", i), "x")
	}
	good := parts(fieldPart("a", "1"), fileHead+"hello", fieldPart("b", "2"))
	for name, c := range map[string]struct {
		body string
		kind errs.Kind
	}{
		"empty":   {"", errs.Invalid},
		"no form": {"hello", errs.Invalid},
		"no file": {parts(fieldPart("a", "1")), errs.Invalid},
		"no file chosen": {parts("Content-Disposition: form-data; name=\"g\"; filename=\"\"\r\n\r\n"),
			errs.Invalid},
		"two files":              {parts(fileHead+"1", fileHead+"2"), errs.Invalid},
		"cut in the file":        {strings.TrimSuffix(parts(fileHead+"hello"), "llo\r\n--b--\r\n"), errs.Invalid},
		"cut after the file":     {strings.TrimSuffix(parts(fileHead+"hello"), "\r\n--b--\r\n"), errs.Invalid},
		"cut in a field":         {good[:len(good)-10], errs.Invalid},
		"no last boundary":       {strings.TrimSuffix(good, "--b--\r\n"), errs.Invalid},
		"a field twice":          {parts(fieldPart("a", "1"), fieldPart("a", "2"), fileHead), errs.Invalid},
		"a field without a name": {parts(fieldPart("", "1"), fileHead), errs.Invalid},
		"a hostile field":        {parts(fieldPart("a\x01b", "1"), fileHead), errs.Invalid},
		"a binary field":         {parts(fieldPart("a", "\xff\xfe"), fileHead), errs.Invalid},
		"a NUL":                  {parts(fieldPart("a", "\x00"), fileHead), errs.Invalid},
		"no disposition":         {parts("Content-Type: text/plain\r\n\r\nhello"), errs.Invalid},
		"a bad disposition":      {parts("Content-Disposition: form-data; filename=\"x\r\n\r\nhello"), errs.Invalid},
		"bad headers":            {parts("what is this\r\n\r\nhello"), errs.Invalid},
		"encoded": {parts("Content-Transfer-Encoding: base64\r\n" + fileHead + "aGVsbG8="),
			errs.Unsupported},
		"a large field": {parts(fieldPart("a", strings.Repeat("x", binary.MaxMetadata)), fileHead),
			errs.TooLarge},
		"a large field after": {parts(fileHead, fieldPart("a", strings.Repeat("x", binary.MaxMetadata))),
			errs.TooLarge},
		"many fields":         {parts(append(many, fileHead)...), errs.TooLarge},
		"endless headers":     {"--b\r\nX: " + strings.Repeat("x", 20<<20), errs.TooLarge},
		"many headers":        {"--b\r\n" + strings.Repeat("X: y\r\n", 1<<20), errs.TooLarge},
		"an endless preamble": {strings.Repeat("x\r\n", 1<<20), errs.TooLarge},
		"an endless epilogue": {good + strings.Repeat("x\r\n", 1<<20), errs.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if content, _, err := readForm(strings.NewReader(c.body)); errs.KindOf(err) != c.kind {
				t.Errorf("%d bytes, %v, a %v; want %v", len(content), err, errs.KindOf(err), c.kind)
			}
		})
	}
	for _, boundary := range []string{"", strings.Repeat("b", 71)} {
		if _, err := openForm(strings.NewReader(good), boundary); !errors.Is(err, errs.Invalid) {
			t.Errorf("boundary %q: %v", boundary, err)
		}
	}
}

// Wherever a form is truncated, reading its file fails.
func TestFormCutAnywhere(t *testing.T) {
	t.Parallel()
	good := parts(fieldPart("a", "1"), fileHead+"hello", fieldPart("b", "2"))
	for n := range len(good) - len("\r\n") {
		if content, _, err := readForm(strings.NewReader(good[:n])); err == nil {
			t.Errorf("cut after %d bytes, %q: %q", n, good[max(0, n-10):n], content)
		}
	}
}

// The error is that of the body, not only that the form is incomplete.
func TestFormOfABrokenBody(t *testing.T) {
	t.Parallel()
	broke := errs.New(errs.Canceled, "too slow")
	for _, n := range []int{0, 10, 100, 130} {
		good := parts(fieldPart("a", "1"), fileHead+"hello", fieldPart("b", "2"))
		body := io.MultiReader(strings.NewReader(good[:n]), iotest.ErrReader(broke))
		if _, _, err := readForm(body); !errors.Is(err, broke) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

func FuzzForm(f *testing.F) {
	f.Add(parts(fieldPart("a", "1"), fileHead+"hello", fieldPart("b", "2")))
	f.Add("--b\r\nX: y\r\n\r\n")
	f.Add("--b--")
	f.Fuzz(func(t *testing.T, body string) {
		content, form, err := readForm(strings.NewReader(body))
		if err != nil && errs.KindOf(err) == errs.Internal {
			t.Errorf("a fault: %v", err)
		}
		if err == nil && (!strings.Contains(body, content) || form.file == nil) {
			t.Errorf("read %q", content)
		}
	})
}
