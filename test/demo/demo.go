package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"belfry/test/process"
)

// demo is one run: a belfry on a data folder of its own.
type demo struct {
	program string // the belfry binary
	config  string // config/demo.yaml
	data    *dataset
	work    string // a temporary folder
	out     io.Writer
	err     io.Writer // belfry writes its progress here

	client *client
}

// run loads the data, changes it, and returns the first difference from what is
// expected.
func (d *demo) run(ctx context.Context) error {
	server, err := process.Start(d.program, []string{"BELFRY_DEMO_BUS=127.0.0.1:0"},
		"--config", d.config, "--data", filepath.Join(d.work, "data"), "--listen", "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.client = &client{url: server.URL}
	d.say("belfry serves at %s", server.URL)
	err = d.steps(ctx, server)
	if stopped := server.Stop(); stopped != nil {
		err = errors.Join(err, fmt.Errorf("belfry did not stop well: %w\n%s", stopped, server.Log()))
	}
	return err
}

func (d *demo) steps(ctx context.Context, server *process.Server) error {
	for _, step := range []func(context.Context) error{
		d.load,
		func(context.Context) error { return server.Idle() },
		d.showCountry, d.countEntries, d.rename, d.remove, d.verify,
	} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// load imports both stores; a subdivision may come before its parent.
func (d *demo) load(ctx context.Context) error {
	for _, store := range []struct {
		name, key string
		records   []record
	}{{"Countries", "alpha_2", d.data.countries}, {"Subdivisions", "code", d.data.subdivisions}} {
		file := filepath.Join(d.work, strings.ToLower(store.name)+".jsonl")
		if err := writeLines(file, store.records); err != nil {
			return err
		}
		if err := d.belfry(ctx, "import", store.name, file, "--key", store.key, "--url", d.client.url); err != nil {
			return err
		}
	}
	return nil
}

// belfry prints and runs a command.
func (d *demo) belfry(ctx context.Context, args ...string) error {
	args = append(args, "--config", d.config)
	d.say("\n$ belfry %s", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, d.program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdout, cmd.Stderr = d.out, d.err
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("belfry %s: %w", args[0], err)
	}
	return nil
}

// shown is the country that the demo shows.
const shown = "DE"

func (d *demo) showCountry(ctx context.Context) error {
	d.say("\nA country has an array of its subdivisions, which the mapping keeps:")
	country, err := d.client.get(ctx, "/countries/"+shown)
	if err != nil {
		return err
	}
	array := entries(country, "subdivisions")
	d.say("GET /countries/%s: %v, %v, with %d subdivisions", shown, country["name"], country["alpha_3"], len(array))
	d.list(array)
	return nil
}

// list prints the beginning of an array.
func (d *demo) list(array []map[string]any) {
	const most = 6
	for i, e := range array {
		if i == most {
			d.say("  ... and %d more", len(array)-most)
			return
		}
		d.say("  %-7v %v (%v)", e["uuid"], e["name"], e["type"])
	}
}

// countEntries compares the number of entries in all arrays with the files.
func (d *demo) countEntries(ctx context.Context) error {
	total := 0
	for _, c := range d.data.countries {
		code := c["alpha_2"]
		country, err := d.client.get(ctx, "/countries/"+code)
		if err != nil {
			return err
		}
		have, want := len(entries(country, "subdivisions")), len(d.data.of(code))
		if have != want {
			return fmt.Errorf("country %s has %d subdivisions in its array instead of %d", code, have, want)
		}
		total += have
	}
	d.say("All %d countries together have %d subdivisions in their arrays, as many as the file.", len(d.data.countries),
		total)

	parent, want := d.data.largestParent()
	s, err := d.client.get(ctx, "/subdivisions/"+parent)
	if err != nil {
		return err
	}
	if have := len(entries(s, "children")); have != want {
		return fmt.Errorf("subdivision %s has %d children in its array instead of %d", parent, have, want)
	}
	d.say("A subdivision may be the parent of others of the same store: %s, %v, has %d children.", parent, s["name"],
		want)
	return nil
}

// rename changes a subdivision, and checks the copy in its country.
func (d *demo) rename(ctx context.Context) error {
	code, name := d.data.of(shown)[0]["code"], "Renamed by the demo"
	d.say("\nPATCH /subdivisions/%s {\"name\": %q}", code, name)
	if err := d.client.write(ctx, http.MethodPatch, "/subdivisions/"+code, fmt.Sprintf("{%q: %q}", "name", name),
		http.StatusOK); err != nil {
		return err
	}
	country, err := d.client.get(ctx, "/countries/"+shown)
	if err != nil {
		return err
	}
	array := entries(country, "subdivisions")
	renamed := slices.IndexFunc(array, func(e map[string]any) bool { return e["uuid"] == code && e["name"] == name })
	if renamed < 0 {
		return fmt.Errorf("the array of %s still has %s under its old name", shown, code)
	}
	d.say("GET /countries/%s: the copy is updated:", shown)
	d.list(array[renamed : renamed+1])
	return nil
}

// remove deletes the country of the largest parent, and checks that its
// subdivisions are deleted with it.
func (d *demo) remove(ctx context.Context) error {
	parent, _ := d.data.largestParent()
	code, _, _ := strings.Cut(parent, "-")
	gone := d.data.of(code)
	d.say("\nDELETE /countries/%s, which has %d subdivisions", code, len(gone))
	if err := d.client.write(ctx, http.MethodDelete, "/countries/"+code, "", http.StatusNoContent); err != nil {
		return err
	}
	for _, s := range append(gone, record{"code": parent}) {
		r, err := d.client.do(ctx, http.MethodGet, "/subdivisions/"+s["code"], "")
		if err != nil {
			return err
		}
		if r.status != http.StatusNotFound {
			return fmt.Errorf("subdivision %s still exists after its country was deleted (%d)", s["code"], r.status)
		}
	}
	d.say("GET /subdivisions/%s: 404, and so for all %d.", parent, len(gone))
	return nil
}

// verify compares every array with its source objects.
func (d *demo) verify(ctx context.Context) error {
	return d.belfry(ctx, "verify", "--data", filepath.Join(d.work, "data"))
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }
