// Package kit is what the HTTP API's packages have in common: requests and replies,
// routes, errors, conditional requests and calls of stores.
//
// # The way of a request
//
//   - Router.ServeHTTP gives the request an Exchange, with a request id and the
//     client's address.
//   - The filters run: CORS, cross-site request forgery (origins.go).
//   - The limits of what the route does are checked: of the address, then of the user
//     (limits.go).
//   - The Handler of the route reads path, headers and body from the Exchange
//     (path.go, conditions.go, body.go), and calls stores through Calls, which
//     authenticates the client and honors Prefer: wait (calls.go, prefer.go).
//   - It replies through the Exchange, or returns an error. problem.go alone
//     translates errors to statuses and problem documents.
//   - The request is counted and logged, after a panic as well (observe.go).
package kit
