package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"belfry/pkg/errs"
)

// Bounds of a document. They exceed the limits of a store.
const (
	maxDocumentBytes = 16 << 20
	maxDocumentDepth = 1000
	// maxExponentDigits keeps every exponent within maxExponent.
	maxExponentDigits = 6
)

// decode reads a document with its numbers as they are written, having made sure
// that it is of a shape that can be validated.
func decode(doc []byte) (any, error) {
	if len(doc) > maxDocumentBytes {
		return nil, errs.New(errs.TooLarge, "the document has %d bytes, more than %d", len(doc), maxDocumentBytes)
	}
	if err := checkShape(doc); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the document is not JSON")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errs.New(errs.Invalid, "the document is not JSON: something follows its end")
	}
	return v, nil
}

// checkShape bounds nesting and exponents. Its result for malformed JSON does not
// matter: the decoder reports that.
func checkShape(doc []byte) error {
	depth := 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			i = skipString(doc, i+1)
		case '{', '[':
			if depth++; depth > maxDocumentDepth {
				return errs.New(errs.Invalid, "the document is nested deeper than %d levels", maxDocumentDepth)
			}
		case '}', ']':
			depth--
		case 'e', 'E':
			if exponentDigits(doc[i+1:]) > maxExponentDigits {
				return errs.New(errs.Invalid, "the document has a number with an exponent of more than %d digits",
					maxExponentDigits)
			}
		}
	}
	return nil
}

// skipString is the offset of the quote that ends the string whose text begins
// at i.
func skipString(doc []byte, i int) int {
	for i < len(doc) && doc[i] != '"' {
		if doc[i] == '\\' {
			i++
		}
		i++
	}
	return i
}

func exponentDigits(text []byte) int {
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	digits := 0
	for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
		digits++
	}
	return digits
}
