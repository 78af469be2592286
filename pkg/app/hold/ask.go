package hold

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"belfry/pkg/api/problem"
	"belfry/pkg/errs"
)

// Answer is the reply of the serving process to the question of a command: the answer, or a
// failure.
type Answer[T any] struct {
	Answer *T `json:"answer,omitempty"`
	Failure
}

// Ask sends the question of a command to the serving process. Errors: those of the answer, Unavailable.
func Ask[T any](ctx context.Context, h Holder, path string, question any) (*T, error) {
	data, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	body, err := Control(ctx, h, http.MethodPost, path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	var reply Answer[T]
	if err := json.NewDecoder(body).Decode(&reply); err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the reply of %s is incomplete: the connection was closed", h)
	}
	if reply.Answer == nil {
		return nil, reply.Err()
	}
	return reply.Answer, nil
}

// Answering handles the questions of a command, of at most maxBytes. doing names the command of a
// question in the log.
func Answering[Q, T any](log *slog.Logger, maxBytes int64, doing func(Q) string, decide func(context.Context, Q) (*T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q Q
		var reply Answer[T]
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBytes)).Decode(&q)
		if err == nil {
			reply.Answer, err = decide(r.Context(), q)
		}
		if err != nil {
			reply.Answer, reply.Failure = nil, FailureOf(log, doing(q), err)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(reply)
	}
}

// Failure is how the serving process reports an error to a command.
type Failure struct {
	Type   string       `json:"type,omitempty"` // of the problem
	Detail string       `json:"detail,omitempty"`
	Errors []errs.Field `json:"errors,omitempty"`
}

// FailureOf makes a failure of an error, which is logged unless it is the command's.
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

// Err is the error that a failure reports.
func (f Failure) Err() error {
	e := errs.New(problem.Kind(f.Type), "%s", f.Detail)
	e.Fields = f.Errors
	return e
}

// Control sends a request to the control server of a process.
func Control(ctx context.Context, h Holder, method, path string, body io.Reader) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, h.Control+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+h.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "%s holds the data and does not respond; if it is stopping, try again", h)
	}
	if res.StatusCode == http.StatusOK {
		return res.Body, nil
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
	return nil, errs.New(errs.Unavailable, "%s replied: %s", h, strings.TrimSpace(string(text)))
}
