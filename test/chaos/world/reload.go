package world

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// reloadLimit is how long the command may take. It ends then where the process is paused by another fault.
const reloadLimit = 5 * time.Second

// Exit codes of the command.
const (
	reloaded    = 0
	unavailable = 1 // nobody serves
	refused     = 2
)

// configuration is what a process is to read again.
type configuration struct {
	name  string
	text  string
	write func(path, text string) error // nil: as a file
	exits []int                         // of the command, besides unavailable
}

// reload has processes read configurations again, by the signal or by the command: some that are valid and others that
// are not. Processes that share stores may have different ones for a while. No request may fail because of that. Ready
// gives all of them the configuration of the beginning again.
func (w *World) reload() Nemesis {
	return Nemesis{Name: "reload", Harmless: true, Inject: func(ctx context.Context, r *rand.Rand) (heal, error) {
		var all []error
		for range 1 + r.IntN(4) {
			model := variant(r) // the same for some of them
			for _, u := range some(r, 1+r.IntN(len(w.belfries())), w.belfries()) {
				if r.IntN(4) == 0 {
					model = variant(r)
				}
				all = append(all, w.reloadOne(ctx, r, u, model))
			}
		}
		return func(context.Context) error { return nil }, errors.Join(all...)
	}}
}

// reloadOne leaves a valid configuration: a process that starts meanwhile needs one.
func (w *World) reloadOne(ctx context.Context, r *rand.Rand, u *unit, model func(string) string) error {
	valid, err := w.valid(r, u, model)
	if err != nil {
		return err
	}
	c := configuration{name: "valid", text: valid, exits: []int{reloaded}}
	if r.IntN(3) == 0 {
		bad := w.invalid(r, valid)
		c = bad[r.IntN(len(bad))]
	}
	write := c.write
	if write == nil {
		write = writeFile
	}
	u.varied.Store(true)
	if err := write(u.config, c.text); err != nil {
		return err
	}
	err = w.signalReload(ctx, r, u, c)
	return errors.Join(err, os.RemoveAll(u.config), writeFile(u.config, valid))
}

// restore has all processes whose configuration differs read that of the beginning, until they did.
func (w *World) restore(ctx context.Context) error {
	for _, u := range w.belfries() {
		if !u.varied.Load() {
			continue
		}
		if err := writeFile(u.config, u.original); err != nil {
			return err
		}
		for {
			code, out, err := w.command(ctx, u)
			if err == nil && code == reloaded {
				break
			}
			if err == nil && code == refused {
				return fmt.Errorf("%s: reload of the configuration of the beginning: %s", u.name, out)
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s does not have the configuration of the beginning: exit %d, %s: %w", u.name, code,
					out, errors.Join(err, ctx.Err()))
			case <-time.After(20 * time.Millisecond):
			}
		}
		u.varied.Store(false)
	}
	return nil
}

func (w *World) signalReload(ctx context.Context, r *rand.Rand, u *unit, c configuration) error {
	if r.IntN(3) == 0 {
		err := u.signal(syscall.SIGHUP)
		<-time.After(time.Duration(r.IntN(50)) * time.Millisecond) // it may be read, or not
		return err
	}
	code, out, err := w.command(ctx, u)
	if err != nil || code == unavailable || slices.Contains(c.exits, code) {
		return err
	}
	if strings.Contains(out, "there is no data folder") {
		return nil // the disk is away during a power cut
	}
	return fmt.Errorf("%s: reload of a configuration that is %s: exit %d, %s\n%s", u.name, c.name, code, out, c.text)
}

// command reloads a process. Its exit code is that of an unavailable process if it ends because of its limit.
func (w *World) command(ctx context.Context, u *unit) (code int, out string, err error) {
	ctx, cancel := context.WithTimeout(ctx, reloadLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.programs.commands, "reload", "--data", u.data)
	cmd.Env = w.env
	text, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return unavailable, string(text), err
	}
	if ctx.Err() != nil {
		return unavailable, string(text), nil
	}
	return cmd.ProcessState.ExitCode(), string(text), nil
}

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }

// models are changes of stores, mappings and what is derived from objects: each replaces the first text by the second.
// Clients write the same objects with all of them.
var models = [][2]string{
	// A mapping is gone, and its worker handles no event of it meanwhile.
	{`    map: {Parents: {key: parents, target: tags, fields: "title, parents", limit: 3}}`, ""},
	{`target: smalls, fields: "title, value", limit: 3`, "target: smalls, fields: title, limit: 3"},
	{`target: smalls, fields: "title, value", limit: 3`, `target: smalls, fields: "title, value", limit: 2`},
	{`target: children, fields: "title, value, `, `target: children, fields: "title, note, `},
	{`target: toys, fields: "title, grandTitle, registerTitle"`, `target: playthings, fields: "title, registerTitle"`},
	// Copies and aggregates are others, or are gone and not kept meanwhile.
	{`copies: {parentTitle: parent.title, parentRatings: parent.ratings}`, `copies: {parentRatings: parent.best}`},
	{`    copies: {grandTitle: child.parentTitle, registerTitle: register.title}
`, ""},
	{`aggregates: {smallCount: count(), smallSum: sum(value)}, `, ""},
	{`best: max(value), worst: min(value)`, `best: max(note), least: min(note)`},
	// There are further ones.
	{"stores:\n", "stores:\n  Extras: {expose: {list: true}, map: {Parents: {key: parent, target: extras}}}\n"},
	{"stores:\n", "stores:\n  Others: {unique: [title], search: {fields: [title]}}\n"},
	{`limit: 3}}
  Tags:`, `limit: 3}, Registers: {key: parent, target: smalls, fields: title}}
  Tags:`},
	// What is derived from objects. Computed properties are of objects alone of which clients don't know each revision.
	{"  Children:\n",
		"  Children:\n    computed: {loud: 'object.title.upperAscii()'}\n    search: {fields: [title]}\n"},
	{"  Parents:\n", "  Parents:\n    computed: {size: 'size(object.title) + size(children)'}\n    indexes: [size]\n"},
	{"  Registers:\n", "  Registers:\n    indexes: [title, 'value, title']\n"},
	{"  Toys:\n", "  Toys:\n    search: {fields: [title, note]}\n"},
	{"  Toys:\n", "  Toys:\n    unique: [title]\n"}, // which no two requests set to the same
}

// variant changes a configuration in the same way each time.
func variant(r *rand.Rand) func(text string) string {
	var chosen [][2]string
	for _, m := range models {
		if r.IntN(4) == 0 {
			chosen = append(chosen, m)
		}
	}
	return func(text string) string {
		for _, m := range chosen {
			text = strings.Replace(text, m[0], m[1], 1)
		}
		return text
	}
}

// valid returns one of many configurations of a process, all of which serve what its clients request.
func (w *World) valid(r *rand.Rand, u *unit, model func(string) string) (string, error) {
	schema, theme := filepath.Join(w.folder, u.name+".json"), filepath.Join(w.folder, u.name+"-theme")
	if err := errors.Join(
		writeFile(schema,
			[]string{`{}`, `{"type": "object"}`, `{"properties": {"title": {"type": "string"}}}`}[r.IntN(3)]),
		os.MkdirAll(theme, 0o700),
		writeFile(filepath.Join(theme, "start.html"),
			fmt.Sprintf(`{{define "title"}}t{{end}}{{define "content"}}%d{{end}}`, r.IntN(3))),
	); err != nil {
		return "", err
	}
	text := u.original
	add := func(after, more string) {
		if r.IntN(2) == 0 {
			text = strings.Replace(text, after, after+more, 1)
		}
	}
	const exposed = ":\n    expose: {list: true}\n"
	add("  Registers"+
		exposed, fmt.Sprintf("    schema: %s\n    uuid: client\n    policy: {create: 'true', update: 'true', delete: "+
		"'true', list: 'true', get: 'true'}\n", schema))
	add("  Toys"+exposed,
		"    fields: {title: {write: 'true'}, note: {read: 'true', write: 'true'}}\n    maxObjectSize: 200KiB\n")
	add("  Smalls"+exposed,
		"    policy: {create: 'true', update: 'true', delete: 'true', list: 'true', get: 'true'}\n    uuid: client\n")
	text = model(text)
	text += "log: {level: " + []string{"debug", "info", "warn"}[r.IntN(3)] + ", format: " +
		[]string{"text", "json"}[r.IntN(2)] + "}\n"
	for _, more := range []string{
		"limits: {loopback: true, address: {reads: 100000, lists: 100000, writes: 100000}}\n",
		"pages: {folder: " + theme + "}\n", "events: {heartbeat: 5s}\n",
		"console: {enabled: false}\n", "documents: {openapi: true, asyncapi: true}\n", "hosts: [belfry.example.com]\n",
		"tombstones: 25h\n", "shutdownTimeout: 20s\n",
		"tracing: {endpoint: 'http://127.0.0.1:1'}\n",
		"backup: {folder: " + filepath.Join(w.folder, u.name+"-backups") + ", schedule: '0 3 * * *'}\n",
	} {
		if r.IntN(2) == 0 {
			text += more
		}
	}
	return text, nil
}

// invalid returns configurations of which nothing may be applied, and one that is cut off: its beginning may be valid.
func (w *World) invalid(r *rand.Rand, valid string) []configuration {
	refuse := []int{refused}
	in := func(old, now string) string { return strings.Replace(valid, old, now, 1) }
	return []configuration{
		{"cut off", valid[:r.IntN(len(valid))], nil, []int{reloaded, refused}},
		{"removed", "", func(path, _ string) error { return os.Remove(path) }, refuse},
		{"a folder", "", func(path, _ string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
			refuse},
		{"huge", valid + strings.Repeat("# x\n", 1<<19), nil, refuse},
		{"empty", "", nil, refuse},
		{"with a rule that does not compile", in("stores:\n", "stores:\n  Broken: {policy: {create: 'pin == ('}}\n"),
			nil, refuse},
		{"with a schema that is missing", in("stores:\n", "stores:\n  Broken: {schema: none.json}\n"), nil, refuse},
		{"with a mapping of a store that is missing",
			in("stores:\n", "stores:\n  Another: {map: {None: {key: none, target: others}}}\n"), nil, refuse},
		{"with another folder of data", in("data: ", "data: ./other-"), nil, refuse},
		{"with another store of users", in("authentication:\n", "authentication:\n  userStore: Others\n"), nil, refuse},
		{"with another bus", in("bus: {", "bus: {user: other, password: 'another-password', "), nil, refuse},
	}
}
