package account_test

import (
	"strings"
	"testing"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

func TestAddressesThatThereAre(t *testing.T) {
	label := strings.Repeat("d", 63)
	for address, want := range map[string]string{
		"Ada@Example.COM":                          "ada@example.com",
		"a..b@docomo.example":                      "a..b@docomo.example",
		"A.B...C.@docomo.example":                  "a.b...c.@docomo.example",
		"a.@docomo.example":                        "a.@docomo.example",
		"o'brien+news@example.com":                 "o'brien+news@example.com",
		"ada@b\u00fccher.example":                  "ada@xn--bcher-kva.example",
		strings.Repeat("x", 64) + "@example.com":   strings.Repeat("x", 64) + "@example.com",
		"ada@" + label + ".com":                    "ada@" + label + ".com",
		"ada@" + label + "." + label + "." + label: "ada@" + label + "." + label + "." + label,
	} {
		if got, err := record.NormalizeAddress(address); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", address, got, err, want)
		}
	}
	for name, address := range map[string]string{
		"65 bytes before the @":    strings.Repeat("x", 65) + "@example.com",
		"a label of 64 bytes":      "ada@" + label + "d.com",
		"255 bytes":                strings.Repeat("x", 63) + "@" + label + "." + label + "." + label,
		"255 bytes with quotes":    strings.Repeat("x", 59) + "..@" + label + "." + label + "." + label,
		"dots alone":               "..@docomo.example",
		"a dot first":              ".a@docomo.example",
		"two dots in the domain":   "a@docomo..example",
		"dots in quotes":           `"a..b"@docomo.example`,
		"a comment between dots":   "a..(b)@docomo.example",
		"two, the first with dots": "a..b@docomo.example,c@example.com",
	} {
		if got, err := record.NormalizeAddress(address); errs.KindOf(err) != errs.Invalid || err == nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A mail gets to an address with dots where others have none.
func TestAnAddressWithDotsRegistersAndLogsIn(t *testing.T) {
	w := newFixture(t, validatedFirst)
	const docomo = "a..b@docomo.example"
	in := w.register(docomo, password)
	w.mustLogin("A..B@docomo.example", password, in.User.UUID)
	w.wantKind(func() error {
		_, err := w.Login.Login(t.Context(), credentials("a.b@docomo.example", password), from)
		return err
	}(), errs.NotFound)
}

// An account with an address that is too long for a new one can still be logged in to.
func TestAnAccountWithALongAddressStays(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	long := strings.Repeat("x", 65) + "@example.com"
	ident := object.Object{}
	for name, value := range w.record("Idents", adaIdent) {
		if name != "uuid" {
			ident[name] = value
		}
	}
	ident.Set("_id", long)
	_, err := w.set.Store("Idents").Save(store.WithCall(t.Context(), store.Call{}), ident, long+"_email")
	w.must(err)
	w.mustLogin(strings.ToUpper(long), password, in.User.UUID)
	_, _, err = w.Registration.Register(t.Context(), credentials("y"+long, password), from)
	w.wantKind(err, errs.Invalid)
}
