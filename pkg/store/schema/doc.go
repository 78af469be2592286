// Package schema validates JSON documents against a JSON Schema of draft 2020-12, draft
// 2019-09 (the default without $schema) or draft-07. It refuses a schema at compile time
// unless it can validate every document correctly: no validator is better than one that
// accepts an invalid object.
//
// # The library and the normal form
//
// The schema tree, the order of its keywords and their evaluation are those of
// github.com/qri-io/jsonschema. Of its keywords minItems, maxItems, minProperties,
// maxProperties and $defs are correct and are used. The others have known defects:
//
//	type                 takes the string "true" for a boolean
//	multipleOf           divides floats
//	enum                 panics if it is empty
//	uniqueItems          ignores its value and takes quadratic time
//	pattern, maxLength   repeat the value in their message
//	applicators          leak one branch's state into another
//	$ref                 fetches over the network
//	$schema              draft 2020-12 is unknown
//
// So a schema is translated before it is passed to the library:
//
//	file ─► node tree with positions ─► index of $id, $anchor, $ref ─► normal form ─► qri
//	        (source.go)                 (index.go, resolve.go)         (normal*.go)
//
// The normal form holds the library's correct keywords and our own, whose names begin
// with "belfry.". They are registered through the library's extension point
// (keywords.go), which overrides no keyword for other users in the process. The normal
// form has no $id, no $schema and no URI at all: every reference has become a name in one
// flat $defs. Nothing is left that could make the library touch its global registry or
// the network.
//
// # What is refused
//
//	$schema      of any other draft
//	references   to anything but the schema's own parts and the embedded metaschemas of the three drafts
//	recursion    of references without descending into the document
//	patterns     that Go's regexp cannot match as ECMA 262 does
//	keywords     of another draft, which would otherwise be ignored silently
//	violations   of the draft itself
//
// A *RefusedError names file, line, keyword, the problem and the remedy.
//
// # What is not validated
//
// contentSchema is an annotation and never makes a document invalid, in any draft. format, contentEncoding and
// contentMediaType assert nothing either, without the option Formats. With it an unknown format is refused (package
// format has the known ones). draft-07 then asserts content that is base64 or JSON, as it permits; the later drafts
// do not. Keywords that no draft knows are ignored, as the drafts require.
//
// # Members that are left out
//
// ValidatePart validates an object without some of its members, as if they were there and valid. They can't simply be
// left out: required, dependentRequired, dependentSchemas and dependencies refer to them. So these keywords are our
// own, and know at the document itself which members count as present. All others see the object without them:
// additionalProperties, unevaluatedProperties, propertyNames and patternProperties refuse none of them, and
// minProperties and maxProperties do not count them.
//
// # Bounds
//
// Validate never panics and takes time proportional to the document. Beyond a number of
// steps that grows with the document's length it stops, and rejects the document with an
// error that says so. Numbers of any size are compared exactly.
package schema
