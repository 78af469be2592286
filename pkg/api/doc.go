// Package api is the HTTP front: it serves stores as REST resources, and
// health, readiness and metrics, on echo.
//
// # The way of a request
//
// Server.ServeHTTP gives the request an exchange, which carries its id and
// records its reply, and hands it to echo's router. A route's handler works on
// the exchange and returns an error when it could not do what was asked;
// problem.go alone turns that error into a status and a problem document.
// Whatever happened, a panic included, the request is then counted and logged.
//
// One resource is one file: objects.go and list.go for a store's objects,
// health.go for the process; the files of objects have several, which begin with
// binary, and take their own time (binary_flow.go). What they share about HTTP is in body.go (media
// types, limits), conditions.go (ETag, If-Match, If-None-Match), prefer.go and
// wait.go (Prefer: wait).
package api
