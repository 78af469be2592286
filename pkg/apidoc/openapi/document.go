// Package openapi generates the OpenAPI document of the operations that the router mounts, with every status that they
// return. It adds the envelope, the components that operations refer to, and the translation into OpenAPI 3.0.
package openapi

import (
	"slices"
	"strconv"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/op"
)

// Document returns the document of operations in OpenAPI 3.1. The same contract gives the same bytes.
func Document(set *op.Set) ([]byte, error) { return whole(set).Encode() }

// whole is the document in OpenAPI 3.1.
func whole(set *op.Set) *ordered.Object {
	k := set.Contract
	d := &document{set: set, names: apimodel.Names{}, paths: &ordered.Object{}}
	for _, o := range set.Operations() {
		d.add(o)
	}
	return ordered.Of(
		"openapi", "3.1.0",
		"info", ordered.Of("title", "belfry", "version", k.Version, "summary",
			"JSON objects in stores, maintained copies, and an event for each change.", "description", description),
		"servers", []any{ordered.Of("url", k.BaseURL)},
		"security", op.Maybe(),
		"tags", set.Tags(),
		"paths", apimodel.PlainIn(d.paths),
		"components", d.components(),
	)
}

const description = "Written from the running configuration.\n\n" +
	"`OPTIONS` is 204 with `Allow` on each path; a method that a path does not support is 405. Errors are problems " +
	"(RFC 9457). " +
	"Any reply may have `Vary` and headers of limits, a reply to PATCH has `Accept-Patch`, pages and redirects " +
	"have headers that protect browsers, and pages for people have `Content-Language`. " +
	"A body of `text/json` is read as `application/json`, and one of `application/ndjson`, `application/jsonl`, " +
	"`application/x-jsonl`, `application/jsonlines` or `application/x-jsonlines` as " +
	"`application/x-ndjson`, if an operation accepts it. " +
	"Requests that are not valid HTTP/1.1 are refused in plain text, with 400, 417, 431, 501 or 505.\n\n" +
	"Objects that were written under an earlier schema may differ from the present one, and so may objects that an " +
	"interceptor has amended."

// document is a document under construction.
type document struct {
	set   *op.Set
	names apimodel.Names // of operations
	paths *ordered.Object
}

// add adds an operation.
func (d *document) add(o op.Operation) {
	path := d.paths.Object(o.Path)
	if path == nil {
		path = &ordered.Object{}
		d.paths.Set(o.Path, path)
	}
	problems := append(slices.Clone(o.Problems), 500, 503)
	if slices.Contains(problems, 401) { // it reads credentials: the rule of an API key can refuse any request
		problems = append(problems, 403)
	}
	slices.Sort(problems)
	replies := o.Replies.Clone()
	for _, status := range slices.Compact(problems) {
		replies.Set(strconv.Itoa(status), ordered.Of("$ref", "#/components/responses/"+problemOf(status).name))
	}
	out := ordered.Of("operationId", d.names.Take(o.ID), "tags", []string{o.Tag}, "summary", o.Summary)
	if o.Description != "" {
		out.Set("description", o.Description)
	}
	if o.Security != nil {
		out.Set("security", o.Security)
	}
	if o.Parameters != nil {
		out.Set("parameters", o.Parameters)
	}
	if o.Body != nil {
		out.Set("requestBody", o.Body)
	}
	out.Set("responses", replies)
	path.Set(strings.ToLower(o.Method), out)
}
