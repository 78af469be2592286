// Package schema validates JSON documents against a JSON Schema of draft 2020-12,
// draft 2019-09 (the default without $schema) or draft-07. A document is validated
// correctly or its schema is refused when it is compiled: a validator that accepts
// an invalid object is worse than none.
//
// # The library and the normal form
//
// The schema tree, the order of its keywords and their evaluation are those of
// github.com/qri-io/jsonschema. Of its keywords minItems, maxItems,
// minProperties, maxProperties and $defs are correct and are used. The others have
// known defects: type takes the string "true" for a boolean, multipleOf divides
// floats, an empty enum panics, uniqueItems ignores its value and takes quadratic
// time, pattern and maxLength repeat the value in their message, the
// applicators leak one branch's state into another, and $ref fetches over the
// network, and draft 2020-12 is unknown. So a schema is translated before it is
// passed to the library:
//
//	file ─► node tree with positions ─► index of $id, $anchor, $ref ─► normal form ─► qri
//	        (source.go)                 (index.go, resolve.go)         (normal*.go)
//
// The normal form holds the library's correct keywords and our own, whose names
// begin with "belfry." and which are registered through the library's extension
// point (keywords.go), so that none of the library's own is overridden for
// anyone else in the process. It holds no $id, no $schema and no URI at all:
// every reference has become a name in one flat $defs. Nothing is left that could
// make the library touch its global registry or the network.
//
// # What is refused
//
// Any other $schema; a reference to anything but the schema's own parts and the
// metaschemas of the three drafts, which are embedded; references that recur
// without descending into the document; a pattern that Go's regexp cannot match as
// ECMA 262 does; keywords of another draft, which would otherwise be ignored
// silently; and whatever the draft itself forbids. A *RefusedError names file,
// line, keyword, what is wrong and what to do instead.
//
// # What is not validated
//
// contentSchema is an annotation and never makes a document invalid, in any draft, and neither do format,
// contentEncoding and contentMediaType without the option Formats. With it a format that is not known is refused
// (package format has those that are), and draft-07 asserts content that is base64 or JSON, as it permits; the later
// drafts do not. Keywords that no draft knows are ignored, as the drafts require.
//
// # Members that are left out
//
// ValidatePart validates an object without some of its members, as if they were there and fit. They can't simply be
// left out: required and what depends on members (dependentRequired, dependentSchemas, dependencies) ask for them. So
// these keywords are our own, and know at the document itself which members count as present. All others see the
// object without them: additionalProperties, unevaluatedProperties, propertyNames and patternProperties refuse none of
// them, and minProperties and maxProperties count none.
//
// # Bounds
//
// Validate never panics and takes time proportional to the document: beyond a
// number of steps that grows with the document's length it stops and rejects the
// document with an error that says so. Numbers are compared exactly, whatever their size.
package schema
