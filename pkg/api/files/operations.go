package files

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

// Operations adds the operations of a binary service.
func Operations(set *op.Set, f apimodel.Files, h *Handler) {
	about := fmt.Sprintf("Files of objects, of at most %d bytes each.", f.MaxSize)
	if f.Types != nil {
		about += " By their content they are " + strings.Join(f.Types, ", ") + "; others are 415."
	}
	set.Tag("Files: "+f.Name, about+narrower(f))
	const place = "/{" + storeParam + "}/{" + httpkit.UUIDParam + "}/{" + propertyParam + "}/{" + indexParam + "}"
	if !f.Restrict.Create {
		addUpload(set, f, f.URL+upload+place, h.put)
	}
	if !f.Restrict.Get {
		addDownload(set, f, f.URL+place, h.get)
	}
	if !f.Restrict.Delete {
		hash := op.Path(hashParam, "The hash of the file to delete.",
			ordered.Of("type", "string", "pattern", "^[0-9a-f]{64}$"))
		set.Add(op.Operation{
			Method: http.MethodDelete, Path: f.URL + place + "/{" + hashParam + "}", ID: "delete" + f.ID + "File",
			Summary: "Delete a file", Description: "The indexes of later files decrease.",
			Parameters: append(placeParameters(set, f, "update", index(false)),
				append(op.Parameters("IfMatch", "Prefer"), hash)...),
			Replies:  ordered.Of("204", op.Reply("It is deleted.", nil, "Cache-Control", "Preference-Applied")),
			Problems: append(interceptorProblems(set, f, "update"), 400, 401, 403, 404, 409, 412, 429),
			Limit:    httpkit.Write, Run: h.delete,
		})
	}
}

// narrower describes the limits of single properties.
func narrower(f apimodel.Files) string {
	var b strings.Builder
	for _, store := range slices.Sorted(maps.Keys(f.Limits)) {
		of := f.Limits[store].Each
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if most := of[name].MaxSize; most > 0 {
				fmt.Fprintf(&b, " Those of %s.%s have at most %d bytes.", store, name, most)
			}
			if of[name].Types != nil {
				fmt.Fprintf(&b, " Those of %s.%s are %s.", store, name, strings.Join(of[name].Types, ", "))
			}
		}
	}
	return b.String()
}

// place are the path parameters of a file.
func placeParameters(set *op.Set, f apimodel.Files, act string, index *ordered.Object) []any {
	store, property := op.Text(""), ordered.Of("type", "string", "minLength", 1, "maxLength", 100)
	stores := f.Stores
	if f.Places != nil {
		stores = slices.Sorted(maps.Keys(f.Places))
		properties := map[string]bool{}
		for _, s := range stores {
			for _, p := range f.Places[s] {
				properties[p] = true
			}
		}
		property = op.OneOf(slices.Sorted(maps.Keys(properties)), "")
	}
	if open := allowing(set.Contract, stores, act); len(open) > 0 {
		store.Set("enum", open)
	}
	return append([]any{op.Path("store", "The store's name.", store)}, append(op.Parameters("UUID"),
		op.Path("property", "The property that holds the records of the files.", property), index)...)
}

// allowing returns the stores whose objects have the routes of an operation, get or update. The files of other stores
// lack these routes, too.
func allowing(k *apimodel.Contract, stores []string, act string) []string {
	return slices.DeleteFunc(slices.Clone(stores), func(name string) bool {
		s := k.Store(name)
		if s == nil || s.Expose == nil {
			return false
		}
		return act == "get" && s.Expose.Restrict.Get || act == "update" && s.Expose.Restrict.Update
	})
}

// index is the last path parameter of a file.
func index(add bool) *ordered.Object {
	schema, description := ordered.Of("type", "integer", "minimum", 0), "Its place among the files of the property."
	if add {
		schema = ordered.Of("type", "string", "pattern", "^(add|0|[1-9][0-9]*)$")
		description += " `add` appends."
	}
	return op.Path("index", description, schema)
}

// askedOf returns the statuses with which interceptors of the stores can refuse.
func interceptorProblems(set *op.Set, f apimodel.Files, act string) []int {
	var all []int
	for _, name := range f.Stores {
		all = append(all, op.InterceptorProblems(set.Contract.Store(name), act)...)
	}
	return all
}

// addUpload adds the operation of an upload.
func addUpload(set *op.Set, f apimodel.Files, path string, run httpkit.Handler) {
	parts := ordered.Of("type", "object", "description", "One part with a filename; other fields become metadata.",
		"required", []string{"file"}, "properties", ordered.Of("file", op.Raw()), "additionalProperties", op.Text(""))
	bytes := ordered.Of("description", "The bytes of the file.")
	record := func(description string, headers ...string) *ordered.Object {
		return op.Reply(description, op.JSON(apimodel.Ref(apimodel.FileRecord)),
			append([]string{"Etag", "Cache-Control", "Preference-Applied"}, headers...)...)
	}
	set.Add(op.Operation{
		Method: http.MethodPut, Path: path, ID: "upload" + f.ID + "File", Summary: "Add or replace a file",
		Parameters: append(placeParameters(set, f, "update", index(true)), append(op.Parameters("IfMatch", "Prefer"),
			op.Header("X-Filename", "The file's name, percent-encoded."),
			op.Header("Content-Disposition", "The file's name; takes precedence over X-Filename (RFC 6266)."),
			op.Header("Content-Digest",
				"The received content must have this hash: `sha-256=:<base64>:` (RFC 9530)."))...),
		// Generated clients send the first type, so it is not a range of types, which belfry refuses. The schema of the
		// bytes has no type: generators treat a format as text, and refuse bytes.
		Body: op.Body(ordered.Of(op.BytesType, ordered.Of("schema", bytes), op.AnyType, ordered.Of("schema", bytes),
			op.MultipartType, ordered.Of("schema", parts))),
		Replies:  ordered.Of("200", record("It replaced a file."), "201", record("It was added.", "Location")),
		Problems: append(interceptorProblems(set, f, "update"), 400, 401, 403, 404, 408, 409, 412, 413, 415, 429),
		Limit:    httpkit.Upload, Run: run,
	})
}

// thumb is the parameter with the size of a thumbnail, if there are thumbnails.
func thumb(f apimodel.Files) []any {
	if len(f.Thumbs) == 0 {
		return nil
	}
	return []any{op.Query(thumbParam, "A smaller picture instead of the file, of JPEG, PNG, GIF or WebP. Its type is "+
		"image/jpeg or image/png.", ordered.Of("type", "string", "enum", f.Thumbs))}
}

// addDownload adds the operations of a download.
func addDownload(set *op.Set, f apimodel.Files, path string, run httpkit.Handler) {
	about := []string{"Etag", "Last-Modified", "Cache-Control", "Content-Disposition", "Content-Security-Policy",
		"Accept-Ranges", "Repr-Digest", "Content-Length"}
	file := func(description string, headers ...string) *ordered.Object {
		return op.Reply(description, ordered.Of(op.AnyType, ordered.Of("schema", op.Raw())),
			append(headers, about...)...)
	}
	known := op.Reply("The client's copy is current.", nil, "Etag", "Last-Modified", "Cache-Control")
	dates := []any{
		op.Header("If-Modified-Since",
			"Without If-None-Match: reply only if the file was uploaded, or its object written, since; else 304."),
		op.Header("If-Unmodified-Since",
			"Without If-Match: 412 if the file was uploaded, or its object written, since."),
	}
	small, problems := thumb(f), []int{400, 401, 403, 404, 412, 429}
	if small != nil {
		problems = append(problems, http.StatusUnsupportedMediaType)
	}
	problems = append(problems, interceptorProblems(set, f, "get")...)
	o := op.Operation{
		Method: http.MethodGet, Path: path, ID: "download" + f.ID + "File", Summary: "Read a file",
		Parameters: append(append(placeParameters(set, f, "get", index(false)), small...),
			append(append(op.Parameters("IfMatch", "IfNoneMatch"), dates...),
				op.Header("Range", "One range of bytes."),
				op.Header("If-Range", "The ETag that the range applies to."))...),
		Replies: ordered.Of(
			"200", file("The file."),
			"206", file("A part of it.", "Content-Range"),
			"304", known,
		),
		Problems: append(slices.Clone(problems), http.StatusRequestedRangeNotSatisfiable),
		Limit:    httpkit.Read, Run: run,
	}
	if f.Signed {
		o.Replies.Set("302", op.Redirect("To the storage; the URL expires.", "Etag", "Last-Modified"))
	}
	set.Add(o)
	set.Add(op.Operation{
		Method: http.MethodHead, Path: path, ID: "head" + f.ID + "File", Summary: "The headers of a file",
		Parameters: append(append(placeParameters(set, f, "get", index(false)), small...),
			append(op.Parameters("IfMatch", "IfNoneMatch"), dates...)...),
		Replies:  ordered.Of("200", op.Reply("The headers of the file.", nil, about...), "304", known),
		Problems: problems,
		Limit:    httpkit.Read, Run: run,
	})
}
