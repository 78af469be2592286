package sessions

import (
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// RequireTexts reports Invalid for fields of a form that are empty: names and values in turn.
func RequireTexts(message string, fields ...string) error {
	var missing []errs.Field
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i+1] == "" {
			missing = append(missing, errs.Field{Pointer: object.Pointer(fields[i]), Message: "is missing"})
		}
	}
	if missing == nil {
		return nil
	}
	return &errs.Error{Kind: errs.Invalid, Message: message, Fields: missing}
}

// StateError is returned for a callback that belongs to no flow of this browser.
func StateError() error {
	return errs.New(errs.Mismatch, "this login was not begun here, has been finished, or took too long")
}
