package record

import (
	"net/mail"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"belfry/pkg/errs"
)

// Maximum sizes of an e-mail address, of the part before the @ and of a label of a domain in bytes, by RFC 5321 and RFC
// 1035.
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
		return "", errAddress("has more than 64 bytes before the @, the maximum of an address")
	}
	for label := range strings.SplitSeq(address[at+1:], ".") {
		if len(label) > maxLabel {
			return "", errAddress("the part after the @ is not a domain: a label has more than 63 bytes")
		}
	}
	return address, nil
}

// KnownAddress is NormalizeAddress for an address of an existing account, which may be longer, because earlier releases
// allowed that.
func KnownAddress(text string) (string, error) {
	at := strings.LastIndexByte(text, '@')
	if at < 1 || at == len(text)-1 {
		return "", errAddress("expected an address such as ada@example.com")
	}
	local, domain := text[:at], text[at+1:]
	domain, err := idna.Lookup.ToASCII(domain)
	if err != nil || !utf8.ValidString(text) {
		return "", errAddress("the part after the @ is not a domain")
	}
	address := local + "@" + domain
	// In a mail the part before the @ is quoted if it has dots in places that are only allowed in quotes.
	if len((&mail.Address{Address: address}).String()) > maxAddress+len("<>") {
		return "", errAddress("is longer than an address can be")
	}
	// Only ASCII can safely be converted to lower case: other letters could become equal to another address.
	for i := range len(address) {
		if address[i] <= ' ' || address[i] >= 0x7f {
			return "", errAddress("only ASCII letters are accepted before the @")
		}
	}
	// Consecutive dots, or a dot before the @, are accepted, because some providers have issued such addresses.
	usual := strings.ReplaceAll(local, ".", "") + "@" + domain
	if parsed, err := mail.ParseAddress(usual); local[0] == '.' || err != nil || parsed.Name != "" ||
		parsed.Address != usual {
		return "", errAddress("expected an address such as ada@example.com")
	}
	return strings.ToLower(address), nil
}

func errAddress(why string) error {
	return &errs.Error{Kind: errs.Invalid, Message: "the login is not an e-mail address",
		Fields: []errs.Field{{Pointer: "/login", Message: why}}}
}
