package modeling

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"belfry/config"
	"belfry/config/edit"
	"belfry/config/value"
	"belfry/internal/ordered"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// stage writes a file into the folder of the draft, and returns its path. name is unique.
func (x *draft) stage(name string, content []byte) (string, error) {
	if x.folder == "" {
		folder, err := os.MkdirTemp(x.parsed.Data, "draft-*")
		if err != nil {
			return "", errs.Wrap(err, errs.Unavailable, "the data folder can't be written")
		}
		x.folder = folder
	}
	path := filepath.Join(x.folder, fmt.Sprintf("%d-%s", len(x.own), name))
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", errs.Wrap(err, errs.Unavailable, "the data folder can't be written")
	}
	x.own = append(x.own, path)
	return path, nil
}

// addSchemas adds the files of schemas, and returns the properties that they no longer have.
func (x *draft) addSchemas() (removed []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(x.draft.Schemas)) {
		text := x.draft.Schemas[name]
		if err := x.admit([]string{"stores", name}); err != nil {
			return nil, err
		}
		if _, err := value.Name(name); err != nil { // it becomes the name of a file
			return nil, &errs.Error{Kind: errs.Invalid, Message: "the store can't have this name",
				Fields: []errs.Field{{Pointer: "/stores", Message: err.Error()}}}
		}
		if len(text) > maxValue {
			return nil, errs.New(errs.TooLarge, "stores.%s.schema: expected at most %d bytes", name, maxValue)
		}
		next, err := object.Parse(text)
		if err != nil {
			return nil, errs.Wrap(err, errs.Invalid, "stores.%s.schema: %s", name, errs.Messages(err))
		}
		f := written{}
		key := []string{"stores", name, "schema"}
		if s := x.parsed.Stores[name]; s != nil && s.Schema != "" {
			f.path, f.before, f.existed = s.Schema, x.schemas[s.Schema], true
			f.after = readableSchema(text, f.before)
			if string(f.before) == string(f.after) {
				continue
			}
			removed = append(removed, missingProperties(f.before, next)...)
		} else {
			f.after = readableSchema(text, nil)
			if f.path, err = x.newFile("schemas", name+".json"); err != nil {
				return nil, err
			}
			relative, err := filepath.Rel(filepath.Dir(x.path), f.path)
			if err != nil {
				return nil, errs.Wrap(err, errs.Internal, "the path of a schema")
			}
			x.changes = append(x.changes, edit.Change{Path: key, Value: edit.Literal(filepath.ToSlash(relative))})
		}
		staged, err := x.stage(name+".json", f.after)
		if err != nil {
			return nil, err
		}
		for _, other := range append(x.storesWith(f.path, name), name) {
			x.stand = append(x.stand, edit.Change{
				Path: []string{"stores", other, "schema"}, Value: edit.Literal(staged)})
			x.replaced = append(x.replaced, edit.Key([]string{"stores", other, "schema"}))
		}
		x.names = append(x.names, staged, f.path)
		x.own = append(x.own, f.path)
		x.files = append(x.files, f)
	}
	return removed, nil
}

// newFile returns the path of a file beside the configuration that does not exist yet.
func (x *draft) newFile(folder, name string) (string, error) {
	ext := filepath.Ext(name)
	for i := 1; i < 1000; i++ {
		unique := name
		if i > 1 {
			unique = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), i, ext)
		}
		path := filepath.Join(filepath.Dir(x.path), folder, unique)
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) && !slices.Contains(x.own, path) {
			return path, nil
		}
	}
	return "", errs.New(errs.Unavailable, "the folder %s has too many files", folder)
}

// addSecret has a key name a new file with a secret.
func (x *draft) addSecret(keys []string, complete bool) error {
	name := edit.Key(keys)
	if keys[0] == "stores" || !config.SecretKey(keys[len(keys)-1]) || config.NamesPath(keys) {
		return errs.New(errs.Invalid, "%s is no secret", name)
	}
	secret, typed := x.draft.Secrets[name]
	switch {
	case complete && secret == "":
		return &errs.Error{Kind: errs.Invalid, Message: "a secret is missing",
			Fields: []errs.Field{{Pointer: "/" + name, Message: "expected a secret"}}}
	case len(secret) > maxSecret:
		return errs.New(errs.TooLarge, "%s: expected at most %d bytes", name, maxSecret)
	case !typed:
		secret = "not-known-yet"
		if x.unknown == nil {
			x.unknown = map[string]bool{}
		}
		x.unknown[name] = true
	}
	path, err := x.newFile("secrets", fileName(name))
	if err != nil {
		return err
	}
	if strings.ContainsAny(path, "}$") || strings.Contains(path, ":-") {
		return errs.New(errs.Unavailable, "the configuration can't name files in %s", filepath.Dir(path))
	}
	staged, err := x.stage(fileName(name), []byte(secret))
	if err != nil {
		return err
	}
	x.changes = append(x.changes, edit.Change{Path: keys, Value: reference(path)})
	x.stand = append(x.stand, edit.Change{Path: keys, Value: reference(staged)})
	x.names, x.own = append(x.names, staged, path), append(x.own, path)
	x.files = append(x.files, written{path: path, after: []byte(secret), secret: true})
	return nil
}

// maxSecret is the largest secret in bytes: a private key in PEM.
const maxSecret = 16 << 10

// reference is a value that is the content of a file.
func reference(path string) string { return "${file:" + path + "}" }

// fileName returns a name of a file for the secret of a key.
func fileName(key string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_':
			return r
		default:
			return '-'
		}
	}, key)
}

// readableSchema returns the text of a schema with one value a line, in the style of the file before.
func readableSchema(text, before []byte) []byte {
	for _, indent := range []string{"\t", "    ", "  "} {
		if indented := indentJSON(before, indent); indent == "  " || before != nil && bytes.Equal(indented, before) {
			return indentJSON(text, indent)
		}
	}
	return text
}

func indentJSON(text []byte, indent string) []byte {
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimSpace(text), "", indent) != nil {
		return text
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// missingProperties returns the properties of a schema that the next one does not have.
func missingProperties(before []byte, next object.Object) (missing []string) {
	properties := func(text []byte) *ordered.Object {
		v, _ := ordered.Value(text)
		o, _ := v.(*ordered.Object)
		return o
	}
	was := properties(before).Object("properties")
	is := properties(next["properties"])
	for _, each := range was.Members() {
		if !is.Has(each.Name) {
			missing = append(missing, each.Name)
		}
	}
	return missing
}
