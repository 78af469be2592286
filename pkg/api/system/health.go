// Package system serves data about the process for operators and tools: health, readiness, metrics, and the documents
// that describe the API.
package system

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// readyTimeout bounds the check of readiness.
const readyTimeout = 5 * time.Second

// Paths of probes.
const (
	healthPath = "/healthz" // the former name of /livez, which some probes still request
	livePath   = "/livez"
	readyPath  = "/readyz"
)

// ProbePaths returns the paths that probes request.
func ProbePaths() []string { return []string{healthPath, livePath, readyPath} }

// Health is the state of the process that probes read.
type Health struct {
	Closed func() error // why the process is not ready while it starts, as for Gate; nil: it has started

	// Ready returns the reason why requests can't be served; /readyz shows the message of its *errs.Error. If they can,
	// it returns the degraded parts, for operators. nil: always ready. ErrStopping is for a process that is about to
	// stop.
	Ready func(context.Context) (degraded []string, err error)

	// Alive returns the reason why only a restart of the process helps, as Ready does. nil: always alive.
	Alive func() error

	Stopping context.Context // not ready once this has ended
}

// ErrStopping is the error of a process that is stopping, so that load balancers send its requests elsewhere.
var ErrStopping = errs.New(errs.Unavailable, "belfry is stopping")

// Gate returns the Filter of a process that is starting: it refuses every request except those of probes with the error
// of closed. A nil closed refuses no request.
func Gate(closed func() error) httpkit.Filter {
	return func(x *httpkit.Exchange) error {
		if closed == nil || slices.Contains(ProbePaths(), x.Request.URL.Path) {
			return nil
		}
		err := closed()
		if err != nil {
			x.LogFailureAt(slog.LevelInfo) // the start logs what it waits for
		}
		return err
	}
}

// live replies that the process is alive, regardless of its dependencies: a restart would not repair those.
func (h Health) live(x *httpkit.Exchange) error {
	if h.Alive != nil {
		if err := h.Alive(); err != nil {
			return failing("not alive", err)
		}
	}
	sendOK(x)
	return nil
}

// ready replies whether requests can be served now.
func (h Health) ready(x *httpkit.Exchange) error {
	if h.Closed != nil {
		if err := h.Closed(); err != nil {
			return expected(x, err)
		}
	}
	if h.Stopping.Err() != nil {
		return expected(x, ErrStopping)
	}
	if h.Ready != nil {
		ctx, cancel := context.WithTimeout(x.Request.Context(), readyTimeout)
		defer cancel()
		degraded, err := h.Ready(ctx)
		switch {
		case errors.Is(err, ErrStopping):
			return expected(x, err)
		case err != nil:
			return failing("not ready", err)
		case len(degraded) > 0:
			return sendDegraded(x, degraded)
		}
	}
	sendOK(x)
	return nil
}

// expected returns the error of a probe that a process gets while it starts or stops, every second perhaps.
func expected(x *httpkit.Exchange, err error) error {
	x.LogFailureAt(slog.LevelDebug)
	return failing("not ready", err)
}

// failing returns the error of a probe, which names the reason if that has a message for clients.
func failing(what string, err error) error {
	var e *errs.Error
	if errors.As(err, &e) && e.Kind != errs.Internal && e.Message != "" {
		return &errs.Error{Kind: errs.Unavailable, Message: what + ": " + e.Message, Err: e.Err}
	}
	return errs.Wrap(err, errs.Unavailable, "%s", what)
}

// sendDegraded replies that requests can be served, with the degraded parts.
func sendDegraded(x *httpkit.Exchange, all []string) error {
	body, err := json.Marshal(struct {
		Status   string   `json:"status"`
		Degraded []string `json:"degraded"`
	}{"ok", all})
	if err != nil {
		return err
	}
	x.SetHeader("Cache-Control", httpkit.NoStore)
	x.Send(http.StatusOK, httpkit.JSON, append(body, '\n'))
	return nil
}

func sendOK(x *httpkit.Exchange) {
	x.SetHeader("Cache-Control", httpkit.NoStore)
	x.Send(http.StatusOK, httpkit.JSON, []byte(`{"status":"ok"}`+"\n"))
}
