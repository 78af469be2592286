// Package system serves what operators and tools ask a process for: health,
// readiness, metrics, and the documents that describe the API.
package system

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
)

// readyTimeout bounds the check of readiness.
const readyTimeout = 5 * time.Second

// Paths of the routes of MountHealth.
const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

// ProbePaths returns the paths that probes request.
func ProbePaths() []string { return []string{healthPath, readyPath} }

// Health are the options of MountHealth.
type Health struct {
	Ready    func(context.Context) error // nil: always ready; /readyz shows the message of its *errs.Error
	Degraded func() []string             // what is degraded in a process that is ready, for its operators; may be nil
	Stopping context.Context             // not ready once this has ended
}

// MountHealth adds /healthz and /readyz.
func MountHealth(r *kit.Router, h Health) {
	r.HandleGet(healthPath, healthy)
	r.HandleGet(readyPath, h.ready)
}

// Gate returns the Filter of a process that is starting: it refuses every request
// but those of MountHealth with the error of closed. A nil closed refuses none.
func Gate(closed func() error) kit.Filter {
	return func(x *kit.Exchange) error {
		if closed == nil {
			return nil
		}
		switch x.Request.URL.Path {
		case healthPath, readyPath:
			return nil
		}
		return closed()
	}
}

// healthy replies that the process is alive, whatever the state of its
// dependencies: restarting it would not repair those.
func healthy(x *kit.Exchange) error {
	sendOK(x)
	return nil
}

// ready replies whether requests can be served now.
func (h Health) ready(x *kit.Exchange) error {
	if h.Stopping.Err() != nil {
		return errs.New(errs.Unavailable, "shutting down")
	}
	if h.Ready != nil {
		ctx, cancel := context.WithTimeout(x.Request.Context(), readyTimeout)
		defer cancel()
		if err := h.Ready(ctx); err != nil {
			return notReady(err)
		}
	}
	if h.Degraded != nil {
		if all := h.Degraded(); len(all) > 0 {
			return sendDegraded(x, all)
		}
	}
	sendOK(x)
	return nil
}

// notReady names what is missing if the error has a message for clients.
func notReady(err error) error {
	var e *errs.Error
	if errors.As(err, &e) && e.Kind != errs.Internal && e.Message != "" {
		return &errs.Error{Kind: errs.Unavailable, Message: "not ready: " + e.Message, Err: e.Err}
	}
	return errs.Wrap(err, errs.Unavailable, "not ready")
}

// sendDegraded replies that requests can be served, and what is degraded.
func sendDegraded(x *kit.Exchange, all []string) error {
	body, err := json.Marshal(struct {
		Status   string   `json:"status"`
		Degraded []string `json:"degraded"`
	}{"ok", all})
	if err != nil {
		return err
	}
	x.SetHeader("Cache-Control", kit.NoStore)
	x.Send(http.StatusOK, kit.JSON, append(body, '\n'))
	return nil
}

func sendOK(x *kit.Exchange) {
	x.SetHeader("Cache-Control", kit.NoStore)
	x.Send(http.StatusOK, kit.JSON, []byte(`{"status":"ok"}`+"\n"))
}
