package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"belfry/pkg/binary"
	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// Binaries makes a binary service a resource, for the objects of stores that are
// exposed, that have a policy, or that the service's Places name. Any other store
// is nobody's business: the one of the sessions, for instance. Nor is a discreet
// one, whose objects must not be guessed.
type Binaries struct {
	Service  *binary.Service
	URL      string // path of its routes: begins with a slash, no colon, no asterisk
	Restrict BinaryRestrict
	Presign  time.Duration // readers are redirected to a URL that is good for so long, if the storage has such; 0: never
	Patience time.Duration // what a client may take for 256 KiB; 0: DefaultPatience
}

// BinaryRestrict names the operations of a binary service that have no route.
type BinaryRestrict struct {
	Create, Get, Delete bool
}

// attachments is Binaries at work.
type attachments struct {
	Binaries
	server *Server
	stores map[string]bool // whose objects can have binaries
}

// Segments of a path below the URL of a binary service.
const (
	storeParam    = "store"
	propertyParam = "property"
	indexParam    = "index"
	hashParam     = "hash"
	upload        = "/upload"
)

func (s *Server) attach(b Binaries) {
	a := &attachments{Binaries: b, server: s, stores: map[string]bool{}}
	for st := range b.Service.Stores() {
		exposed := slices.ContainsFunc(s.Exposures, func(e Exposure) bool { return e.Store == st.Name() })
		a.stores[st.Name()] = !st.HidesForbidden() && (exposed || st.Policy() != nil || b.Service.Properties(st.Name()) != nil)
	}
	a.URL = strings.TrimRight(b.URL, "/")
	if a.Patience == 0 {
		a.Patience = DefaultPatience
	}
	const place = "/:" + storeParam + "/:" + uuidParam + "/:" + propertyParam + "/:" + indexParam
	if !b.Restrict.Get {
		s.handleGet(a.URL+place, a.get)
	}
	if !b.Restrict.Create {
		s.handle(http.MethodPut, a.URL+upload+place, a.put)
	}
	if !b.Restrict.Delete {
		s.handle(http.MethodDelete, a.URL+place+"/:"+hashParam, a.delete)
	}
}

// delete is DELETE on a binary, which its hash names besides its place.
func (a *attachments) delete(x *exchange) error {
	place, err := a.place(x)
	if err != nil {
		return err
	}
	hash, err := x.segment(hashParam)
	if err != nil {
		return err
	}
	if !driver.ValidHash(hash) {
		return errs.New(errs.Invalid, "the last segment of the path is the binary's hash: 64 digits of lower-case hexadecimal")
	}
	match, err := x.ifMatch()
	if err != nil {
		return err
	}
	if match.given && !match.has(hash, false) {
		return errs.New(errs.Mismatch, "the binary to delete is none of those in If-Match")
	}
	_, _, err = a.server.write(x, func(ctx context.Context) error {
		_, err := a.Service.Delete(ctx, place, hash)
		return err
	})
	if err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

// ifMatch reads If-Match on a write to a binary. If-None-Match is refused there,
// since a precondition must not be overlooked.
func (x *exchange) ifMatch() (tags, error) {
	if len(x.req.Header["If-None-Match"]) > 0 {
		return tags{}, errs.New(errs.Invalid, `If-None-Match is not taken here: upload to "add" to replace nothing`)
	}
	return parseTags("If-Match", x.req.Header["If-Match"])
}

// place reads the path of a binary.
func (a *attachments) place(x *exchange) (binary.Place, error) {
	index, err := x.segment(indexParam)
	if err != nil {
		return binary.Place{}, err
	}
	return a.placeAt(x, index)
}

func (a *attachments) placeAt(x *exchange, index string) (p binary.Place, err error) {
	if p.Store, err = x.segment(storeParam); err != nil {
		return p, err
	}
	if !a.stores[p.Store] {
		return p, errs.New(errs.NotFound, "there is no store %q with binaries", cut(p.Store, 64))
	}
	if p.UUID, err = x.segment(uuidParam); err != nil {
		return p, err
	}
	if p.Property, err = x.segment(propertyParam); err != nil {
		return p, err
	}
	if p.Index, err = strconv.Atoi(index); err != nil || p.Index < 0 || strconv.Itoa(p.Index) != index {
		return p, errs.New(errs.Invalid, "%q is no index: a whole number from 0 is expected", cut(index, 64))
	}
	return p, nil
}

// segment returns what the path has for a parameter.
func (x *exchange) segment(param string) (string, error) {
	value := x.params.Param(param)
	if strings.Contains(value, "/") {
		// The router's last parameter takes the rest of the path.
		return "", echo.ErrNotFound
	}
	if x.req.URL.RawPath == "" {
		return value, nil
	}
	// The router matched the path as it was sent.
	decoded, err := url.PathUnescape(value)
	if err != nil {
		return "", errs.New(errs.Invalid, "the path is not properly percent-encoded")
	}
	return decoded, nil
}

// fileTag is the entity tag of a content.
func fileTag(hash string) string { return `"` + hash + `"` }
