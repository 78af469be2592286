package openapi

import (
	"fmt"
	"maps"
	"slices"

	"belfry/internal/ordered"
	"belfry/pkg/apidoc/model"
)

// files adds the routes of a binary service.
func (d *document) files(f model.Files) {
	tag := "Files: " + f.Name
	d.tag(tag, fmt.Sprintf("Files of objects, of at most %d bytes each.", f.MaxSize))
	const place = "/{store}/{uuid}/{property}/{index}"
	if !f.Restrict.Create {
		d.upload(f, tag, f.URL+"/upload"+place)
	}
	if !f.Restrict.Get {
		d.download(f, tag, f.URL+place)
	}
	if !f.Restrict.Delete {
		hash := ordered.Of("name", "hash", "in", "path", "required", true, "description", "That of the file to delete.",
			"schema", ordered.Of("type", "string", "pattern", "^[0-9a-f]{64}$"))
		d.add(operation{
			method: "delete", path: f.URL + place + "/{hash}", tag: tag, id: "delete" + f.ID + "File", summary: "Delete a file",
			description: "The indexes of later files decrease.",
			parameters:  append(d.place(f, "update", index(false)), append(parameters("IfMatch", "Prefer"), hash)...),
			replies:     ordered.Of("204", reply("It is deleted.", nil, "Cache-Control", "Preference-Applied")),
			problems:    append(d.askedOf(f, "update"), 400, 401, 403, 404, 409, 412, 429, 500, 503),
		})
	}
}

// place are the path parameters of a file.
func (d *document) place(f model.Files, op string, index *ordered.Object) []any {
	in := func(name, description string, schema *ordered.Object) *ordered.Object {
		return ordered.Of("name", name, "in", "path", "required", true, "description", description, "schema", schema)
	}
	store, property := ordered.Of("type", "string"), ordered.Of("type", "string", "minLength", 1, "maxLength", 100)
	stores := f.Stores
	if f.Places != nil {
		stores = slices.Sorted(maps.Keys(f.Places))
		properties := map[string]bool{}
		for _, s := range stores {
			for _, p := range f.Places[s] {
				properties[p] = true
			}
		}
		property = ordered.Of("type", "string", "enum", slices.Sorted(maps.Keys(properties)))
	}
	if open := d.allowing(stores, op); len(open) > 0 {
		store.Set("enum", open)
	}
	return append([]any{in("store", "The store's name.", store)}, append(parameters("UUID"),
		in("property", "The property that holds the records of the files.", property), index)...)
}

// allowing are the stores whose objects have the routes of an operation, get or
// update: files of others have none either.
func (d *document) allowing(stores []string, op string) []string {
	return slices.DeleteFunc(slices.Clone(stores), func(name string) bool {
		s := d.contract.Store(name)
		if s == nil || s.Expose == nil {
			return false
		}
		return op == "get" && s.Expose.Restrict.Get || op == "update" && s.Expose.Restrict.Update
	})
}

// index is the last path parameter of a file.
func index(add bool) *ordered.Object {
	schema, description := ordered.Of("type", "integer", "minimum", 0), "Its place among the files of the property."
	if add {
		schema = ordered.Of("type", "string", "pattern", "^(add|0|[1-9][0-9]*)$")
		description += " `add` appends."
	}
	return ordered.Of("name", "index", "in", "path", "required", true, "description", description, "schema", schema)
}

// askedOf are the statuses with which interceptors of the stores can refuse.
func (d *document) askedOf(f model.Files, op string) []int {
	var all []int
	for _, name := range f.Stores {
		all = append(all, interceptorProblems(d.contract.Store(name), op)...)
	}
	return all
}

// raw is a content that is not JSON.
func raw() *ordered.Object { return ordered.Of("type", "string", "format", "binary") }

func (d *document) upload(f model.Files, tag, path string) {
	header := func(name, description string) *ordered.Object {
		return ordered.Of("name", name, "in", "header", "description", description, "schema", ordered.Of("type", "string"))
	}
	parts := ordered.Of("type", "object", "description", "One part with a filename; other fields become metadata.", "required", []string{"file"},
		"properties", ordered.Of("file", raw()), "additionalProperties", ordered.Of("type", "string"))
	bytes := ordered.Of("description", "The bytes of the file.")
	record := func(description string, headers ...string) *ordered.Object {
		return reply(description, asJSON(model.Ref(model.FileRecord)), append([]string{"Etag", "Cache-Control", "Preference-Applied"}, headers...)...)
	}
	d.add(operation{
		method: "put", path: path, tag: tag, id: "upload" + f.ID + "File", summary: "Add or replace a file",
		parameters: append(d.place(f, "update", index(true)), append(parameters("IfMatch", "Prefer"),
			header("X-Filename", "The file's name, percent-encoded."),
			header("Content-Disposition", "The file's name too, and stronger (RFC 6266)."),
			header("Content-Digest", "What arrives must have this hash: `sha-256=:<base64>:` (RFC 9530)."))...),
		// The first type is that which generated clients send: not a range of types, which belfry refuses as a type. No type of a schema
		// for the bytes: generators take a format for text, and refuse what a program has.
		body:     body(ordered.Of(bytesType, ordered.Of("schema", bytes), anyType, ordered.Of("schema", bytes), multipartType, ordered.Of("schema", parts))),
		replies:  ordered.Of("200", record("It replaced a file."), "201", record("It was added.", "Location")),
		problems: append(d.askedOf(f, "update"), 400, 401, 403, 404, 408, 409, 412, 413, 415, 429, 500, 503),
	})
}

func (d *document) download(f model.Files, tag, path string) {
	about := []string{"Etag", "Last-Modified", "Cache-Control", "Content-Disposition", "Content-Security-Policy", "Accept-Ranges", "Repr-Digest", "Content-Length"}
	file := func(description string, headers ...string) *ordered.Object {
		return reply(description, ordered.Of(anyType, ordered.Of("schema", raw())), append(headers, about...)...)
	}
	known := reply("The client has it.", nil, "Etag", "Last-Modified", "Cache-Control")
	header := func(name, description string) *ordered.Object {
		return ordered.Of("name", name, "in", "header", "description", description, "schema", ordered.Of("type", "string"))
	}
	dates := []any{
		header("If-Modified-Since", "Without If-None-Match: reply only if the file was uploaded, or its object written, since; else 304."),
		header("If-Unmodified-Since", "Without If-Match: 412 if the file was uploaded, or its object written, since."),
	}
	o := operation{
		method: "get", path: path, tag: tag, id: "download" + f.ID + "File", summary: "Read a file",
		parameters: append(d.place(f, "get", index(false)), append(append(parameters("IfMatch", "IfNoneMatch"), dates...),
			header("Range", "One range of bytes."), header("If-Range", "The ETag that the range applies to."))...),
		replies: ordered.Of(
			"200", file("The file."),
			"206", file("A part of it.", "Content-Range"),
			"304", known,
		),
		problems: append(d.askedOf(f, "get"), 400, 401, 403, 404, 412, 416, 429, 500, 503),
	}
	if f.Signed {
		o.replies.Set("302", redirectTo("To the storage; the URL expires.", "Etag", "Last-Modified"))
	}
	d.add(o)
	d.add(operation{
		method: "head", path: path, tag: tag, id: "head" + f.ID + "File", summary: "The headers of a file",
		parameters: append(d.place(f, "get", index(false)), append(parameters("IfMatch", "IfNoneMatch"), dates...)...),
		replies:    ordered.Of("200", reply("What the file is.", nil, about...), "304", known),
		problems:   append(d.askedOf(f, "get"), 400, 401, 403, 404, 412, 429, 500, 503),
	})
}
