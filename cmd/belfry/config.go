package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"belfry/config"
	"belfry/internal/count"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/starter"
	"belfry/pkg/errs"
)

// configFile is the flag of every command that reads a configuration.
type configFile struct {
	Config string `short:"c" help:"The configuration file (${default})." default:"config/belfry.yaml" env:"BELFRY_CONFIG" placeholder:"FILE"`
}

// read reads the file. An empty environment variable counts as unset.
func (f configFile) read() (*config.Config, error) {
	name := cmp.Or(f.Config, starter.ConfigFile)
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		begin := ""
		if name == starter.ConfigFile {
			begin = "`belfry init` writes one to begin with, "
		}
		return nil, errs.New(errs.Invalid,
			"%s: cannot be read: no such file or directory; %s--config names another file", name, begin)
	}
	return config.Load(name, os.LookupEnv)
}

// parse is read for a text in place of the file's.
func (f configFile) parse(text []byte) (*config.Config, error) {
	return config.Parse(cmp.Or(f.Config, starter.ConfigFile), text, os.LookupEnv)
}

// configuration holds the flags of most of them.
type configuration struct {
	configFile
	Data string `help:"The data folder, instead of the configured one." env:"BELFRY_DATA" placeholder:"FOLDER"`
}

func (f configuration) load(listen string) (*config.Config, error) {
	c, err := f.read()
	if err != nil {
		return nil, err
	}
	return c, c.Override(listen, f.Data)
}

type configCmd struct {
	Check  configCheckCmd  `cmd:"" help:"Check a configuration, schemas and policies included."`
	Schema configSchemaCmd `cmd:"" help:"Print the JSON Schema of the configuration, for editors."`
}

type configSchemaCmd struct{}

// Run prints the schema of this version of belfry.
func (configSchemaCmd) Run(s streams) error {
	_, err := s.out.Write(config.Schema())
	return err
}

type configCheckCmd struct {
	configFile
	File string `arg:"" optional:"" help:"The configuration file, instead of that of --config."`
}

// Run checks one file, and returns every problem in it.
func (c *configCheckCmd) Run(s streams) error {
	c.Config = cmp.Or(c.File, c.Config, starter.ConfigFile)
	loaded, err := c.read()
	if err != nil {
		return err
	}
	if err := plan.CheckStrictly(loaded); err != nil {
		return err
	}
	mappings := 0
	declared := loaded.DeclaredStores()
	for _, name := range declared {
		mappings += len(loaded.Stores[name].Map)
	}
	if _, err = fmt.Fprintf(s.out, "%s: good: %s, %s\n", c.Config, count.Of(len(declared), "store"),
		count.Of(mappings, "mapping")); err != nil {
		return err
	}
	for _, w := range plan.Warnings(loaded) {
		if _, err := fmt.Fprintf(s.err, "warning: %s\n", w); err != nil {
			return err
		}
	}
	for _, note := range plan.Notes(loaded) {
		if _, err := fmt.Fprintf(s.out, "note: %s\n", note); err != nil {
			return err
		}
	}
	if err := writeConditions(s.out, loaded); err != nil {
		return err
	}
	writeCopies(s.out, loaded)
	return writeRights(s.out, plan.Rights(loaded))
}

// writeCopies writes which properties of other objects are shown as copies, and to whom.
func writeCopies(w io.Writer, c *config.Config) {
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		s := c.Stores[name]
		for _, property := range slices.Sorted(maps.Keys(s.Copies)) {
			reference, field := s.Copies[property].Source()
			readers := "everyone who may get the object, and to lists and indexes"
			switch {
			case s.NeverRead(property):
				readers = "nobody"
			case !s.ReadByAll(property):
				readers = "those for whom " + s.Fields[property].Read
			}
			fmt.Fprintf(w, "%s.%s shows %s of %s to %s\n", name, property, field, s.References[reference].Store,
				readers)
		}
	}
}

// writeRights writes who may do what over HTTP, a line a store.
func writeRights(w io.Writer, all []plan.StoreRights) error {
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprint(t, "store")
	for _, op := range plan.Operations() {
		fmt.Fprintf(t, "\t%s", op)
	}
	open := false
	for _, s := range all {
		fmt.Fprintf(t, "\n%s", s.Store)
		for _, r := range s.Operations {
			fmt.Fprintf(t, "\t%s", shownRight(r))
			open = open || r.Open
		}
		for i, r := range s.Files {
			lead := ", "
			if i == 0 {
				lead = "\tits files: "
			}
			fmt.Fprintf(t, "%s%s %s", lead, r.Operation, shownRight(r))
			open = open || r.Open
		}
	}
	fmt.Fprintln(t)
	if err := t.Flush(); err != nil || !open {
		return err
	}
	_, err := fmt.Fprintln(w, openMark+" open to all: no rule of a policy says who may")
	return err
}

// openMark is behind what is open to all.
const openMark = "(!)"

func shownRight(r plan.Right) string {
	if r.Open {
		return r.Who + openMark
	}
	return r.Who
}

// writeConditions writes which mappings copy some of the objects only.
func writeConditions(w io.Writer, c *config.Config) error {
	for _, source := range slices.Sorted(maps.Keys(c.Stores)) {
		for _, target := range slices.Sorted(maps.Keys(c.Stores[source].Map)) {
			m := c.Stores[source].Map[target]
			var conditions []string
			if m.SameOwner {
				conditions = append(conditions, "both have the same owner")
			}
			if m.When != "" {
				conditions = append(conditions, m.When)
			}
			if len(conditions) == 0 {
				continue
			}
			if _, err := fmt.Fprintf(w, "%s.%s has an object of %s only when %s\n", target, m.Target, source,
				strings.Join(conditions, " and ")); err != nil {
				return err
			}
		}
	}
	return nil
}
