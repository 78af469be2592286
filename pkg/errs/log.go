package errs

import (
	"errors"
	"log/slog"
)

// Attributes are an error's attributes in a log: its text, and the stack of a panic.
func Attributes(err error) []slog.Attr {
	if err == nil {
		return nil
	}
	all := []slog.Attr{slog.String("error", err.Error())}
	var p *Panic
	if errors.As(err, &p) {
		all = append(all, slog.String("stack", string(p.Stack)))
	}
	return all
}
