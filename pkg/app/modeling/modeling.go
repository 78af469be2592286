// Package modeling changes the configuration for admins: its stores, providers, mailers and limits. A change is made
// in the text of the file, validated as a whole, and applied by a reload: all of it or nothing.
//
// The input of an admin is a value. It is never a reference to the environment or to a file, and never a path. A secret
// is written to a file of its own, which the configuration names.
//
// While a change is being written, the data folder has a record of it with the files as they were before. If the
// process ends before the change is complete, the next start restores them: see Recover.
package modeling

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"belfry/config"
	"belfry/config/edit"
	"belfry/config/yamltext"
	"belfry/pkg/api/console"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
	"belfry/pkg/store/schema"
)

// Editor changes the configuration of a process. It is safe for concurrent use.
type Editor struct {
	Served *serving.Current
	Roles  serving.Roles

	// Parse reads a configuration from a text, with the flags of the process; nil if it was not read from a file.
	Parse func(text []byte) (*config.Config, error)
	// Reload makes the process serve what the file has.
	Reload func(ctx context.Context) error
	// Sharing says why other processes have the same configuration; "" if none has.
	Sharing func(ctx context.Context) string
	Log     *slog.Logger

	changing sync.Mutex // held while a change is validated or made
	silent   bool       // some changes may not be published yet; guarded by changing
	running  part.Background
}

// current is the configuration as its files have it.
type current struct {
	path    string // of the file
	text    []byte
	values  edit.Map
	parsed  *config.Config
	schemas map[string][]byte // by the path of the file
	base    string
}

// read reads the files. They must have what the process serves: otherwise a change would also apply what someone else
// has written, without showing it.
func (e *Editor) read() (*current, error) {
	served := e.Served.Now()
	if e.Parse == nil || served.Config.File() == "" {
		return nil, errs.New(errs.Unavailable, "this process was started without a file of its configuration")
	}
	path, err := filepath.Abs(served.Config.File())
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the folder of the process is unknown")
	}
	c := &current{path: path, schemas: map[string][]byte{}}
	if c.text, err = yamltext.Read(path); err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "%s can't be read", path)
	}
	if c.parsed, err = e.Parse(c.text); err != nil {
		return nil, errOutdated(path, "it has problems: "+err.Error())
	}
	if c.values, err = edit.Read(c.text); err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "%s can't be changed by a program: %v", path, err)
	}
	compiled, err := plan.CompileFor(c.parsed, e.Roles)
	if err != nil {
		return nil, errOutdated(path, "it has problems: "+err.Error())
	}
	changed := append(config.Changed(served.Config, c.parsed), served.Plan.Files.Changed(compiled.Files)...)
	if len(changed) > 0 {
		return nil, errOutdated(path, "these keys have changed: "+strings.Join(changed, ", "))
	}
	for _, s := range c.parsed.Stores {
		if s.Schema == "" {
			continue
		}
		if c.schemas[s.Schema], err = schema.Read(s.Schema); err != nil {
			return nil, errs.Wrap(err, errs.Unavailable, "the schema of %s can't be read", s.Name)
		}
	}
	c.base = c.digest()
	return c, nil
}

func errOutdated(path, why string) error {
	return errs.New(errs.Conflict, "%s is not what belfry serves; %s. Correct it, or run `belfry reload`, first", path,
		why)
}

// digest is the state of all files that a change can replace.
func (c *current) digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s", len(c.text), c.text)
	for _, path := range slices.Sorted(maps.Keys(c.schemas)) {
		fmt.Fprintf(h, "%q %d\n%s", path, len(c.schemas[path]), c.schemas[path])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Document returns the configuration as admins may see it.
func (e *Editor) Document(ctx context.Context) (*console.ModelDocument, error) {
	e.changing.Lock()
	defer e.changing.Unlock()
	c, err := e.read()
	if err != nil {
		return nil, err
	}
	d := &console.ModelDocument{File: c.path, Base: c.base, ReadOnly: e.readOnly(ctx, c), Schemas: map[string][]byte{},
		Shared: map[string][]string{}}
	d.Values, d.Hidden = c.shown()
	for _, name := range slices.Sorted(maps.Keys(c.parsed.Stores)) {
		if path := c.parsed.Stores[name].Schema; path != "" {
			d.Schemas[name] = c.schemas[path]
			d.Shared[name] = c.storesWith(path, name)
		}
	}
	return d, nil
}

// storesWith returns the stores that have a schema file, besides one.
func (c *current) storesWith(path, except string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(c.parsed.Stores)) {
		if c.parsed.Stores[name].Schema == path && name != except {
			all = append(all, name)
		}
	}
	return all
}

// readOnly says why this process does not write its file; "" if it does.
func (e *Editor) readOnly(ctx context.Context, c *current) string {
	if !c.parsed.Console.Edit {
		return "console.edit is false here, which is the default outside of development"
	}
	if why := e.Sharing(ctx); why != "" {
		return why
	}
	f, err := os.OpenFile(c.path, os.O_WRONLY, 0)
	if err != nil {
		return "this process may not write " + c.path
	}
	_ = f.Close()
	return ""
}

// shown returns the values that admins may see, and the keys of the others.
func (c *current) shown() (console.ModelValues, []string) {
	values := c.values
	var hidden []string
	for _, keys := range config.HiddenKeys(c.parsed) {
		if name := edit.Key(keys); !slices.Contains(hidden, name) {
			hidden = append(hidden, name)
			values = values.With(keys, nil)
		}
	}
	return func(path ...string) ([]byte, bool) {
		v, ok := values.At(path...)
		if !ok {
			return nil, false
		}
		return encodeShown(v), true
	}, hidden
}

// masked returns a text of a configuration without the values that messages must not quote either, and without the
// secrets of the other one of a change: a comment may repeat what the change removes.
func masked(text []byte, c, other *config.Config) (string, error) {
	for _, keys := range config.HiddenKeys(c) {
		var err error
		if text, err = edit.Apply(text, edit.Change{Path: keys, Value: hiddenValue}); err != nil {
			return "", errs.Wrap(err, errs.Invalid, "the file has a secret that can't be hidden; edit the file")
		}
	}
	for _, secret := range append(c.Secrets(), other.Secrets()...) {
		if len(secret) >= minSecret { // in a comment, for example
			text = bytes.ReplaceAll(text, []byte(secret), []byte(hiddenValue))
		}
	}
	return string(text), nil
}

const (
	hiddenValue = "[secret]"
	minSecret   = 6 // bytes of a secret that is looked for in all of the text
)
