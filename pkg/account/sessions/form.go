package sessions

import (
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// RequireTexts returns Invalid for empty fields of a form. names and values alternate.
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

// StateError is returned for a callback without a flow of this browser.
func StateError() error {
	return errs.New(errs.Mismatch, "this login was started in another browser, is finished, or took too long")
}
