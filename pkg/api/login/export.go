package login

import (
	"net/http"
	"time"

	"belfry/internal/ordered"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
	"belfry/pkg/store"
)

// export streams the data of the user. Once the reply has begun, an error cuts the connection: no client may treat an
// incomplete archive as complete.
func (h *Handler) export(x *httpkit.Exchange) error {
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	if !h.fromTrustedPage(x) {
		return errs.New(errs.Denied, "a page of another origin began the export: open it from a page of this service")
	}
	run, err := h.service.Exports.Begin(x.Context(), session)
	if err != nil {
		return err
	}
	defer run.End(x.Context())
	account, err := h.service.Exports.Account(x.Context(), session)
	if err != nil {
		return err
	}
	kept, stop := run.Keep(x.Request.Context())
	defer stop()
	ctx := store.WithCall(kept, store.Call{
		Client: true, Origin: event.OriginHTTP, Ctx: x.EventCtx(), User: session.Visible, Session: session.ForRules(),
	})
	x.MarkStream()
	out := &exportWriter{x: x, control: http.NewResponseController(x.ResponseWriter)}
	return h.exporter.Write(ctx, out, session.User.UUID, account)
}

// A client has exportPatience for each exportWindow bytes. The connection of a slower client is closed.
const (
	exportWindow   = 256 << 10
	exportPatience = time.Minute
)

// exportWriter writes an archive to a client, who has to keep the pace. The reply begins with the first bytes, so that
// an error before that is replied with a problem.
type exportWriter struct {
	x       *httpkit.Exchange
	control *http.ResponseController
	left    time.Duration // of the patience, for this window
	bytes   int           // of this window
}

// Write implements io.Writer.
func (w *exportWriter) Write(p []byte) (int, error) {
	if !w.x.Replied() {
		w.x.SetHeader("Content-Type", "application/zip")
		w.x.SetHeader("Content-Disposition", `attachment; filename="export.zip"`)
		w.x.SetHeader("Cache-Control", httpkit.NoStore)
		w.x.WriteHeader(http.StatusOK)
	}
	if w.bytes <= 0 {
		w.bytes, w.left = exportWindow, exportPatience
	}
	began := time.Now()
	// Connections without deadlines, as in tests, return an error: nothing to limit.
	_ = w.control.SetWriteDeadline(began.Add(w.left))
	n, err := w.x.Write(p)
	w.bytes -= n
	w.left -= time.Since(began)
	return n, err
}

// addExport adds the operation by which users download their data.
func (h *Handler) addExport(set *op.Set) {
	set.Add(op.Operation{
		Method: http.MethodGet, Path: "/auth/export", ID: "export", Summary: "Download one's data",
		Security: op.Needed(),
		Description: "A zip file with the account, the objects that the user owns and their files, and a manifest as " +
			"its last entry. Without the manifest the file is incomplete. Needs a login of the last 10 minutes.",
		Replies: ordered.Of("200", op.Reply("The archive.", op.Content("application/zip", op.Raw()),
			"Cache-Control", "Content-Disposition")),
		Problems: []int{401, 403, 409, 429},
		Limit:    httpkit.List, Navigation: true, Run: h.export,
	})
}
