package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"belfry/pkg/api/problem"
	"belfry/pkg/errs"
)

// answer is the reply of the serving process to the question of a command: the answer, or a
// failure.
type answer[T any] struct {
	Answer *T `json:"answer,omitempty"`
	failure
}

// ask sends the question of a command to the serving process. Errors: those of the answer, Unavailable.
func ask[T any](ctx context.Context, h Holder, path string, question any) (*T, error) {
	data, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	body, err := control(ctx, h, http.MethodPost, path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	var reply answer[T]
	if err := json.NewDecoder(body).Decode(&reply); err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the reply of %s is incomplete: the connection was closed", h)
	}
	if reply.Answer == nil {
		return nil, reply.error()
	}
	return reply.Answer, nil
}

// answering handles the questions of a command, of at most maxBytes. doing names the command of a
// question in the log.
func answering[Q, T any](log *slog.Logger, maxBytes int64, doing func(Q) string, decide func(context.Context, Q) (*T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q Q
		var reply answer[T]
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBytes)).Decode(&q)
		if err == nil {
			reply.Answer, err = decide(r.Context(), q)
		}
		if err != nil {
			reply.Answer, reply.failure = nil, failureOf(log, doing(q), err)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(reply)
	}
}

// failure is how the serving process reports an error to a command.
type failure struct {
	Type   string       `json:"type,omitempty"` // of the problem
	Detail string       `json:"detail,omitempty"`
	Errors []errs.Field `json:"errors,omitempty"`
}

// failureOf makes a failure of an error, which is logged unless it is the command's.
func failureOf(log *slog.Logger, doing string, err error) failure {
	f := failure{Type: problem.Of(errs.KindOf(err)).Type, Detail: "the server failed; its log has the reason"}
	var own *errs.Error
	if errors.As(err, &own) {
		f.Detail, f.Errors = errs.Messages(err), own.Fields
	} else {
		log.Error(doing, "error", err)
	}
	return f
}

func (f failure) error() error {
	e := errs.New(problem.Kind(f.Type), "%s", f.Detail)
	e.Fields = f.Errors
	return e
}
