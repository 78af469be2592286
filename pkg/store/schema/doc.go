// Package schema judges JSON documents by a JSON Schema of draft 2019-09 (the
// default) or draft-07. A document is judged right or its schema is refused when
// it is compiled, never judged wrongly: a validator that says yes to a wrong
// object is worse than none.
//
// # The library and what is made of it
//
// The schema tree, the order of its keywords and their evaluation are those of
// github.com/qri-io/jsonschema. Of its keywords required, minItems, maxItems,
// minProperties, maxProperties and $defs are right and are used. The others have
// known faults: type takes the string "true" for a boolean, multipleOf divides
// floats, an empty enum panics, uniqueItems ignores its value and takes quadratic
// time, pattern and maxLength repeat the judged value in their message, the
// applicators leak one branch's state into another, and $ref fetches over the
// network. So a schema is translated before the library sees it:
//
//	file ─► node tree with positions ─► index of $id, $anchor, $ref ─► normal form ─► qri
//	        (source.go)                 (index.go, resolve.go)         (normal*.go)
//
// The normal form holds the library's right keywords and our own, whose names
// begin with "belfry." and which are registered through the library's extension
// point (keywords.go), so that none of the library's own is overridden for
// anyone else in the process. It holds no $id, no $schema and no URI at all:
// every reference has become a name in one flat $defs. Nothing is left that could
// make the library touch its global registry or the network.
//
// # What is refused
//
// Any other $schema; a reference to anything but the schema's own parts and the
// metaschemas of the two drafts, which are embedded; references that recur
// without descending into the document; a pattern that Go's regexp cannot judge as
// ECMA 262 does; keywords of another draft, which would otherwise be ignored in
// silence; and whatever the draft itself forbids. A *RefusedError names file,
// line, keyword, what is wrong and what to do instead.
//
// # What is not judged
//
// format, contentEncoding, contentMediaType and contentSchema are annotations and
// never make a document invalid, in either draft. Use pattern to constrain a
// string. Keywords that no draft knows are ignored, as both drafts demand.
//
// # Bounds
//
// Validate never panics and takes time proportional to the document: beyond a
// number of steps that grows with the document's length it gives up, says so, and
// refuses the document. Numbers are compared exactly, whatever their size.
package schema
