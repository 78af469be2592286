package hold

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/problem"
)

// Failure is how the serving process reports an error to a command.
type Failure struct {
	Type   string       `json:"type,omitempty"` // of the problem
	Detail string       `json:"detail,omitempty"`
	Errors []errs.Field `json:"errors,omitempty"`
}

// FailureOf makes a failure of an error, which is logged unless the command caused it.
func FailureOf(log *slog.Logger, doing string, err error) Failure {
	f := Failure{Type: problem.Of(errs.KindOf(err)).Type, Detail: "the server failed; its log has the reason"}
	var own *errs.Error
	if errors.As(err, &own) {
		f.Detail, f.Errors = errs.Messages(err), own.Fields
	} else {
		log.Error(doing, "error", err)
	}
	return f
}

// Err returns the error that a failure reports.
func (f Failure) Err() error {
	e := errs.New(problem.Kind(f.Type), "%s", f.Detail)
	e.Fields = f.Errors
	return e
}

// Empty reports whether there is no failure.
func (f Failure) Empty() bool { return f.Type == "" && f.Detail == "" }

// OtherVersion is the error of a reply that this version does not know.
func (h Holder) OtherVersion() error {
	return errs.New(errs.Unavailable, "%s is of another version, whose replies this version of belfry does not know: "+
		"use the command of the version that serves", h)
}

// unknownPath is the reply of net/http to a request that a process does not know.
const unknownPath = "404 page not found"

// Control sends a request to the control server of a process.
func Control(ctx context.Context, h Holder, path string, body io.Reader) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.Control+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+h.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable,
			"%s holds the data and does not respond; if it is stopping, try again", h)
	}
	if res.StatusCode == http.StatusOK {
		return res.Body, nil
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
	if strings.TrimSpace(string(text)) == unknownPath {
		return nil, h.OtherVersion()
	}
	return nil, errs.New(errs.Unavailable, "%s replied: %s", h, strings.TrimSpace(string(text)))
}
