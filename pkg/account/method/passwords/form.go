package passwords

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// PasswordForm returns a password in the one form in which it is hashed: Unicode's NFC, with a plain space for every
// other one. So it is the same from a Mac, whose é may be two characters, and from a phone, whose keyboard may write a
// no-break space.
//
// These are the mappings of the profile OpaqueString (RFC 8265). The profile's other rules would refuse passwords in
// use: characters that are newer than the tables of this program, joined emoji, and control characters.
func PasswordForm(password string) string {
	if !utf8.ValidString(password) {
		return password
	}
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Zs, r) {
			return ' '
		}
		return r
	}, password))
}

// passwordForms returns the texts that the hash of a right password may be of: its form and, if that differs, the
// password as it was sent. Earlier releases and other programs hash the latter. For a password that is too long it
// returns the empty text, which is never a password, so that there is always a text to hash.
func passwordForms(password string) []string {
	form := PasswordForm(password)
	switch asSent := len(password) <= MaxPassword; {
	case !asSent && len(form) > MaxPassword:
		return []string{""}
	case form == password || !asSent:
		return []string{form}
	default:
		return []string{form, password}
	}
}
