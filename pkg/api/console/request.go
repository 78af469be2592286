package console

import (
	"context"
	"mime/multipart"
	"net/http"
	"net/url"
	"time"

	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/store"
)

// The most bytes of a form.
const (
	maxForm     = 4 << 20  // two objects of the largest size, percent-encoded, as in a conflict
	maxOpenForm = 64 << 10 // of a client that is not an admin
)

// request is a request to a view.
type request struct {
	*httpkit.Exchange
	Session *sessions.Session // of the admin; nil on a route for anyone if nobody is logged in

	console *Console
	view    string
	admin   bool
	file    bool   // the reply is a file
	keeps   bool   // what the form has must not be lost
	policy  string // Content-Security-Policy
}

// Call returns the context for the admin's calls of stores. They are calls of a client: fields that never leave the
// server stay hidden, interceptors are called, and events name the actor. They are also trusted: the console has
// checked that the user is an admin, so rules for clients do not apply.
func (r *request) Call() (context.Context, error) {
	ctx, err := r.console.calls.Client(r.Exchange)
	if err != nil {
		return nil, err
	}
	call := store.CallOf(ctx)
	call.Trusted = true
	return store.WithCall(ctx, call), nil
}

// CallAbout returns the uuid that the path names, and the context for the admin's calls of stores.
func (r *request) CallAbout() (ctx context.Context, uuid string, err error) {
	if uuid, err = r.UUID(); err == nil {
		ctx, err = r.Call()
	}
	return ctx, uuid, err
}

// Partial reports whether htmx asks for a part of a page.
func (r *request) Partial() bool { return r.Request.Header.Get("Hx-Request") == "true" }

// Form returns the fields of the form that a POST has sent.
func (r *request) Form() (url.Values, error) {
	if r.Request.PostForm != nil {
		return r.Request.PostForm, nil
	}
	limit := int64(maxOpenForm)
	if r.admin {
		limit = maxForm
	}
	form, err := r.ReadForm(limit)
	if err == nil {
		r.Request.PostForm = form
	}
	return form, err
}

// Submitted returns the fields of the form that a POST has sent, and the context for the admin's calls of stores.
func (r *request) Submitted() (url.Values, context.Context, error) {
	form, err := r.Form()
	if err != nil {
		return nil, nil, err
	}
	ctx, err := r.Call()
	return form, ctx, err
}

// Query returns a parameter of the URL.
func (r *request) Query(name string) string { return r.Exchange.Query().Get(name) }

// Redirect redirects the browser to a page of the console, which shows the notice; "" for none.
func (r *request) Redirect(target, notice string) error {
	return r.RedirectUndo(target, notice, nil)
}

// seeOther redirects the browser, or htmx in it, to another page.
func (r *request) seeOther(target string) {
	if r.Partial() {
		r.SetHeader("Hx-Redirect", target)
		r.WriteHeader(http.StatusOK)
		return
	}
	r.SetHeader("Location", target)
	r.WriteHeader(http.StatusSeeOther)
}

func notFound(format string, args ...any) error { return errs.New(errs.NotFound, format, args...) }

// upload begins to read a form with a file, for which the connection has time. If it does not support deadlines, the
// server's deadlines apply.
func (r *request) upload() (*multipart.Reader, error) {
	conn := http.NewResponseController(r.Exchange)
	_ = conn.SetReadDeadline(time.Now().Add(transferTime))
	_ = conn.SetWriteDeadline(time.Now().Add(transferTime + time.Minute))
	r.Request.Body = r.Body()
	form, err := r.Request.MultipartReader()
	return form, errs.Wrap(err, errs.Invalid, "the form has no file")
}
