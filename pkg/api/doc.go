// Package api is the HTTP API of belfry. New composes it of one package for each domain:
//
//   - login: registering, logging in, sessions (/auth)
//   - objects: stores as REST resources
//   - files: the binaries of objects
//   - events: Server-Sent Events (/events)
//   - system: health, readiness, metrics, and the documents that describe the API
//
// They share package kit, whose comment describes the path of a request. Each has its routes in its function Mount, and
// the path of its main request in its package comment.
package api
