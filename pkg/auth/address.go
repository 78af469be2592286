package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"net/mail"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// maxAddress is the most bytes of an e-mail address, by RFC 5321.
const maxAddress = 254

// Address returns the form of an e-mail address by which it is recognised:
// ASCII letters in lower case, an international domain in its ASCII form. It
// reports errs.Invalid for what is no address that mail can be sent to.
func NormalizeAddress(text string) (string, error) {
	bad := func(why string) (string, error) {
		return "", &errs.Error{Kind: errs.Invalid, Message: "the login is no e-mail address",
			Fields: []errs.Field{{Pointer: "/login", Message: why}}}
	}
	at := strings.LastIndexByte(text, '@')
	if at < 1 || at == len(text)-1 {
		return bad("expected an address such as ada@example.com")
	}
	local, domain := text[:at], text[at+1:]
	domain, err := idna.Lookup.ToASCII(domain)
	if err != nil || !utf8.ValidString(text) {
		return bad("the part behind the @ is no domain")
	}
	address := local + "@" + domain
	if len(address) > maxAddress {
		return bad("is longer than an address can be")
	}
	// Lower case is for ASCII alone: that of other letters can fall on those
	// of someone else's address.
	for i := range len(address) {
		if address[i] <= ' ' || address[i] >= 0x7f {
			return bad("only ASCII letters are taken before the @")
		}
	}
	parsed, err := mail.ParseAddress(address)
	if err != nil || parsed.Name != "" || parsed.Address != address {
		return bad("expected an address such as ada@example.com")
	}
	return strings.ToLower(address), nil
}

// identUUID is the uuid of the ident that stands for a provider's user. An id
// that no uuid can hold is represented by its hash.
func identUUID(id, kind string) string {
	if uuid := id + "_" + kind; object.ValidUUID(uuid) {
		return uuid
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:]) + "_" + kind
}

// emailType is the type of idents that stand for an address.
const emailType = "email"
