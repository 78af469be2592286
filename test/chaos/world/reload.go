package world

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
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
// are not. No request may fail because of that.
func (w *World) reload() Nemesis {
	return Nemesis{Name: "reload", Harmless: true, Inject: func(ctx context.Context, r *rand.Rand) (heal, error) {
		var all []error
		for range 1 + r.IntN(4) {
			for _, u := range some(r, 1+r.IntN(len(w.belfries())), w.belfries()) {
				all = append(all, w.reloadOne(ctx, r, u))
			}
		}
		return func(context.Context) error { return nil }, errors.Join(all...)
	}}
}

// reloadOne leaves a valid configuration: a process that starts meanwhile needs one.
func (w *World) reloadOne(ctx context.Context, r *rand.Rand, u *unit) error {
	valid, err := w.valid(r, u)
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
	if err := write(u.config, c.text); err != nil {
		return err
	}
	err = w.signalReload(ctx, r, u, c)
	return errors.Join(err, os.RemoveAll(u.config), writeFile(u.config, valid))
}

func (w *World) signalReload(ctx context.Context, r *rand.Rand, u *unit, c configuration) error {
	if r.IntN(3) == 0 {
		err := u.signal(syscall.SIGHUP)
		<-time.After(time.Duration(r.IntN(50)) * time.Millisecond) // it may be read, or not
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reloadLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.programs.commands, "reload", "--data", u.data)
	cmd.Env = w.env
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		return err
	}
	for _, code := range append(c.exits, unavailable) {
		if cmd.ProcessState.ExitCode() == code || ctx.Err() != nil {
			return nil
		}
	}
	if strings.Contains(string(out), "there is no data folder") {
		return nil // the disk is away during a power cut
	}
	return fmt.Errorf("%s: reload of a configuration that is %s: exit %d, %s", u.name, c.name, cmd.ProcessState.ExitCode(), out)
}

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }

// valid returns one of many configurations of a process, all of which serve what its clients request.
func (w *World) valid(r *rand.Rand, u *unit) (string, error) {
	schema, theme := filepath.Join(w.folder, u.name+".json"), filepath.Join(w.folder, u.name+"-theme")
	if err := errors.Join(
		writeFile(schema, []string{`{}`, `{"type": "object"}`, `{"properties": {"title": {"type": "string"}}}`}[r.IntN(3)]),
		os.MkdirAll(theme, 0o700),
		writeFile(filepath.Join(theme, "start.html"), fmt.Sprintf(`{{define "title"}}t{{end}}{{define "content"}}%d{{end}}`, r.IntN(3))),
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
	add("  Registers"+exposed, fmt.Sprintf("    schema: %s\n    uuid: client\n    policy: {create: 'true', update: 'true', delete: 'true', list: 'true', get: 'true'}\n", schema))
	add("  Toys"+exposed, "    fields: {title: {read: 'true', write: 'true'}, note: {write: 'true'}}\n    maxObjectSize: 200KiB\n")
	add("  Smalls"+exposed, "    policy: {create: 'true', update: 'true', delete: 'true', list: 'true', get: 'true'}\n    uuid: client\n")
	text += "log: {level: " + []string{"debug", "info", "warn"}[r.IntN(3)] + "}\n"
	for _, more := range []string{
		"limits: {loopback: true, address: {reads: 100000, lists: 100000, writes: 100000}}\n", "pages: {folder: " + theme + "}\n", "events: {heartbeat: 5s}\n",
		"console: {enabled: false}\n", "documents: {openapi: true, asyncapi: true}\n", "hosts: [belfry.example.com]\n", "tombstones: 25h\n", "shutdownTimeout: 20s\n",
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
		{"a folder", "", func(path, _ string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, refuse},
		{"huge", valid + strings.Repeat("# x\n", 1<<19), nil, refuse},
		{"empty", "", nil, refuse},
		{"with a rule that does not compile", in("stores:\n", "stores:\n  Broken: {policy: {create: 'pin == ('}}\n"), nil, refuse},
		{"with a schema that is missing", in("stores:\n", "stores:\n  Broken: {schema: none.json}\n"), nil, refuse},
		{"with another store", in("stores:\n", "stores:\n  Another: {}\n"), nil, refuse},
		{"with another mapping", in("cascade: true", "cascade: false"), nil, refuse},
		{"with another bus", in("bus: {", "bus: {events: {maxAge: 1h}, "), nil, refuse},
	}
}
