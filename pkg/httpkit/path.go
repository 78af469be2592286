package httpkit

import (
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// UUIDParam is the path parameter that names an object.
const UUIDParam = "uuid"

// UUID returns the uuid of the object that the path names.
func (x *Exchange) UUID() (string, error) {
	uuid, err := x.PathParam(UUIDParam)
	if err != nil {
		return "", err
	}
	return uuid, object.CheckUUID(uuid)
}

// PathParam returns the decoded value of a path parameter.
func (x *Exchange) PathParam(name string) (string, error) {
	value := x.params.Param(name)
	if strings.IndexByte(value, '/') >= 0 {
		// The router's last parameter matches the rest of the path.
		return "", echo.ErrNotFound
	}
	if x.Request.URL.RawPath == "" {
		return value, nil // net/http has decoded the path, and the router matched that
	}
	// The router matched RawPath, the path as it was sent.
	decoded, err := url.PathUnescape(value)
	if err != nil {
		return "", errs.New(errs.Invalid, "the path is not properly percent-encoded")
	}
	return decoded, nil
}
