// Package files serves the binaries of objects.
//
// # The path of an upload
//
//	PUT /binaries/upload/Books/{uuid}/cover/0
//	  httpkit.Router          filters: CORS, cross-site request forgery
//	  httpkit.Calls.Limit     limits of the address and of the user
//	  Handler.put         path and headers (announcement); the body as an inflow, with its
//	                      time limits and limits of bytes (flow.go); a form up to its file (form.go)
//	  httpkit.Calls.Write     authenticates the client; honors Prefer: wait
//	  Memory              waits for memory while many uploads are in flight
//	  binary.Service.Put  checks what can be refused, stores the content, has httpkit.Calls
//	                      authenticate the client again, writes the record
//	  httpkit.Exchange        201 or 200 with the record, its ETag and Location
//
// # The path of a download
//
//	GET /binaries/Books/{uuid}/cover/0
//	  Handler.get          preconditions and Range (range.go)
//	  binary.Service.Get  policy of the object; the record
//	  Handler.redirect     302 to a presigned URL of the storage, where configured; otherwise
//	  binary.Service.Open  the content, written at the pace of the client (flow.go)
package files

import (
	"cmp"
	"context"
	"net/http"
	"net/textproto"
	"strconv"
	"time"

	"belfry/config"
	"belfry/pkg/apimodel"
	"belfry/pkg/binary"
	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/wire"
)

// Options are the options of a Handler.
type Options struct {
	Service *binary.Service
	// readers are redirected to a URL that is valid for this long, if the storage supports it; 0: never
	Presign  time.Duration
	Patience time.Duration // time that a client has to transfer 256 KiB; 0: DefaultPatience
	Memory   *Memory       // of uploads in flight, which services share; nil: one of its own

	Thumbnails *binary.Thumbnails // which services share; nil: there are no thumbnails
}

// Handler serves the binaries of a service.
type Handler struct {
	service  *binary.Service
	calls    *httpkit.Calls
	stores   map[string]bool            // whose objects can have binaries
	left     map[string]config.Restrict // of exposed stores: the restrictions of objects apply to their files
	url      string
	presign  time.Duration
	patience time.Duration
	memory   *Memory

	thumbs     []string // their sizes
	thumbnails *binary.Thumbnails
}

// Parameters and segments of a path below the URL of a binary service.
const (
	storeParam    = "store"
	propertyParam = "property"
	indexParam    = "index"
	hashParam     = "hash"
	upload        = "/upload"
)

// NewHandler returns what serves the binary service of a contract. It serves stores that are exposed, that have a
// policy, or that the service's Properties name: all others, such as the store of sessions, are internal. It does not
// serve stores that hide objects which the client may not read. If the objects of a store can't be read or updated over
// HTTP, its files can't be read or changed either.
func NewHandler(calls *httpkit.Calls, k *apimodel.Contract, f apimodel.Files, o Options) *Handler {
	h := &Handler{
		service: o.Service, calls: calls, stores: map[string]bool{}, left: map[string]config.Restrict{}, url: f.URL,
		presign: o.Presign, patience: cmp.Or(o.Patience, DefaultPatience), memory: o.Memory,
		thumbs: f.Thumbs, thumbnails: o.Thumbnails,
	}
	if h.memory == nil {
		h.memory = NewMemory(0)
	}
	for _, s := range k.Stores {
		if s.Expose != nil {
			h.left[s.Name] = s.Expose.Restrict
		}
	}
	for st := range o.Service.Stores() {
		_, exposed := h.left[st.Name()]
		rules := st.Rules()
		h.stores[st.Name()] = !rules.HidesForbidden() &&
			(exposed || rules.Policy() != nil || o.Service.Properties(st.Name()) != nil)
	}
	return h
}

// delete is DELETE on a binary, named by its place and its hash.
func (h *Handler) delete(x *httpkit.Exchange) error {
	place, err := h.place(x)
	if err != nil {
		return err
	}
	hash, err := x.PathParam(hashParam)
	if err != nil {
		return err
	}
	if !driver.ValidHash(hash) {
		return errs.New(errs.Invalid,
			"the last segment of the path is the binary's hash: 64 digits of lower-case hexadecimal")
	}
	match, err := ifMatch(x)
	if err != nil {
		return err
	}
	if match.Given && !match.Match(hash) {
		return match.FileMismatch()
	}
	_, _, err = h.calls.Write(x, func(ctx context.Context) error {
		_, err := h.service.Delete(ctx, place, hash)
		return err
	})
	if err != nil {
		return err
	}
	return x.SendStatus(http.StatusNoContent)
}

// ifMatch parses If-Match of a write to a binary. If-None-Match is Invalid there, and so is If-Unmodified-Since without
// If-Match, since a precondition must not be ignored.
func ifMatch(x *httpkit.Exchange) (httpkit.Tags, error) {
	if len(x.Request.Header["If-None-Match"]) > 0 {
		return httpkit.Tags{}, errs.New(errs.Invalid,
			`If-None-Match is not supported here: upload to "add" to replace nothing`)
	}
	if len(x.Request.Header[textproto.CanonicalMIMEHeaderKey(wire.HeaderKey)]) > 0 {
		return httpkit.Tags{}, errs.New(errs.Invalid,
			"%s is not supported for files: to repeat an upload safely, name its place by a number, not by \"add\"",
			wire.HeaderKey)
	}
	match, err := httpkit.IfMatch(x.Request.Header)
	if date := x.Request.Header["If-Unmodified-Since"]; err == nil && !match.Given && len(date) == 1 {
		if _, malformed := http.ParseTime(date[0]); malformed == nil { // a malformed date is ignored (RFC 9110, 13.1.4)
			return httpkit.Tags{}, errs.New(errs.Invalid,
				"If-Unmodified-Since is not supported here because one second can have several writes: send If-Match")
		}
	}
	return match, err
}

// place parses the path of a binary.
func (h *Handler) place(x *httpkit.Exchange) (binary.Place, error) {
	index, err := x.PathParam(indexParam)
	if err != nil {
		return binary.Place{}, err
	}
	return h.placeAt(x, index)
}

func (h *Handler) placeAt(x *httpkit.Exchange, index string) (p binary.Place, err error) {
	if p.Store, err = x.PathParam(storeParam); err != nil {
		return p, err
	}
	reading := x.Request.Method == http.MethodGet || x.Request.Method == http.MethodHead
	if err := h.offers(p.Store, reading); err != nil {
		return p, err
	}
	if p.UUID, err = x.PathParam(httpkit.UUIDParam); err != nil {
		return p, err
	}
	if p.Property, err = x.PathParam(propertyParam); err != nil {
		return p, err
	}
	if p.Index, err = strconv.Atoi(index); err != nil || p.Index < 0 || strconv.Itoa(p.Index) != index {
		return p, errs.New(errs.Invalid, "%q is not an index: a whole number from 0 is expected",
			httpkit.Truncate(index, 64))
	}
	return p, nil
}

// offers reports NotFound for a store whose files can't be read, or changed, over HTTP.
func (h *Handler) offers(store string, reading bool) error {
	switch left := h.left[store]; {
	case !h.stores[store]:
		return errs.New(errs.NotFound, "there is no store %q with binaries", httpkit.Truncate(store, 64))
	case reading && left.Get:
		return errs.New(errs.NotFound, "files of %s can't be read, as its objects can't: expose.restrict.get", store)
	case !reading && left.Update:
		return errs.New(errs.NotFound,
			"files of %s can't be uploaded or deleted, as its objects can't be updated: expose.restrict.update", store)
	}
	return nil
}

// fileTag returns the entity tag of a content.
func fileTag(hash string) string { return `"` + hash + `"` }
