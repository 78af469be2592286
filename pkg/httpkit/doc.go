// Package httpkit has the common parts of the HTTP API's packages: requests and replies,
// routes, errors, conditional requests and calls of stores.
//
// # Steps of a request
//
// Router.ServeHTTP gives the request an Exchange, with a request id and the client's
// address. Then it takes these steps:
//
//	origins.go       filters: CORS, cross-site request forgery
//	limits.go        the limits of the route's act: of the address, then of the user
//	Handler          reads path, headers and body from the Exchange (path.go, conditions.go, body.go); calls stores
//	                 through Calls, which authenticates the client and honors Prefer: wait (calls.go, prefer.go);
//	                 replies through the Exchange, or returns an error
//	problem.go       translates errors to statuses and problem documents, and is the only place that does
//	observe.go       counts and logs the request, after a panic as well
package httpkit
