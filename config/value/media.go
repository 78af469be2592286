package value

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"belfry/internal/mediatype"
)

var mediaRange = regexp.MustCompile(`^[a-z]+/(\*|[a-z0-9][a-z0-9.+-]*)$`)

// parseMediaRange accepts a media type that files are recognized by, or all of a kind.
func parseMediaRange(text string) (string, error) {
	of := strings.ToLower(text)
	switch {
	case of == "*" || of == "*/*":
		return "", errors.New("all types are what a service takes without the key: leave it out")
	case !mediaRange.MatchString(of):
		return "", errors.New("expected a media type, as application/pdf, or all of a kind, as image/*")
	case !mediatype.Known(of):
		return "", fmt.Errorf("files of the type %s are not recognized by their content", of)
	}
	return of, nil
}
