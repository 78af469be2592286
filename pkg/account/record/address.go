package record

import (
	"net/mail"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"belfry/pkg/errs"
)

// Most bytes of an e-mail address, of the part before the @ and of a label of a domain, by RFC 5321 and RFC 1035.
const (
	maxAddress = 254
	maxLocal   = 64
	maxLabel   = 63
)

// NormalizeAddress returns the form of an e-mail address by which accounts are
// found: ASCII letters in lower case, an international domain in its ASCII form.
// It reports errs.Invalid for text that is not an address that mail can be sent to.
func NormalizeAddress(text string) (string, error) {
	address, err := KnownAddress(text)
	if err != nil {
		return "", err
	}
	at := strings.LastIndexByte(address, '@')
	if at > maxLocal {
		return "", errAddress("has more than 64 bytes before the @, which no address has")
	}
	for label := range strings.SplitSeq(address[at+1:], ".") {
		if len(label) > maxLabel {
			return "", errAddress("the part after the @ is no domain: a part of it has more than 63 bytes")
		}
	}
	return address, nil
}

// KnownAddress is NormalizeAddress of an address that may be that of an account: there may be longer ones, of earlier releases.
func KnownAddress(text string) (string, error) {
	at := strings.LastIndexByte(text, '@')
	if at < 1 || at == len(text)-1 {
		return "", errAddress("expected an address such as ada@example.com")
	}
	local, domain := text[:at], text[at+1:]
	domain, err := idna.Lookup.ToASCII(domain)
	if err != nil || !utf8.ValidString(text) {
		return "", errAddress("the part after the @ is no domain")
	}
	address := local + "@" + domain
	// A mail has the part before the @ in quotes if dots are where they must not be without.
	if len((&mail.Address{Address: address}).String()) > maxAddress+len("<>") {
		return "", errAddress("is longer than an address can be")
	}
	// Only ASCII has a lower case that is safe: that of other letters can be the
	// same as in somebody else's address.
	for i := range len(address) {
		if address[i] <= ' ' || address[i] >= 0x7f {
			return "", errAddress("only ASCII letters are accepted before the @")
		}
	}
	// Dots may be one after the other, or last before the @: there are providers that gave away such addresses. So they
	// are accepted, with the characters of other addresses.
	usual := strings.ReplaceAll(local, ".", "") + "@" + domain
	if parsed, err := mail.ParseAddress(usual); local[0] == '.' || err != nil || parsed.Name != "" || parsed.Address != usual {
		return "", errAddress("expected an address such as ada@example.com")
	}
	return strings.ToLower(address), nil
}

func errAddress(why string) error {
	return &errs.Error{Kind: errs.Invalid, Message: "the login is no e-mail address", Fields: []errs.Field{{Pointer: "/login", Message: why}}}
}
