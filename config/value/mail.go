package value

import (
	"errors"
	"net/mail"
)

func parseSender(text string) (string, error) {
	if _, err := mail.ParseAddress(text); err != nil {
		return "", errors.New("expected an address such as Belfry <no-reply@example.com>")
	}
	return text, nil
}
