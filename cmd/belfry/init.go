package main

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"belfry/pkg/app/starter"
)

type initCmd struct {
	Folder   string       `arg:"" optional:"" default:"." help:"The folder to write into (the current one). It is created if necessary." placeholder:"FOLDER"`
	Template templateName `help:"What to begin with: ${enum} (${default})." enum:"${templates}" default:"${template}" placeholder:"TEMPLATE"`
}

// templateName is the name of a template.
type templateName string

// templateMapper reads the name of a template, and provides the variables of its flag. As variables of all commands
// they would be looked for in every text of every command, at each start of belfry.
type templateMapper struct{}

func (templateMapper) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	var name string
	if err := ctx.Scan.PopValueInto("template", &name); err != nil {
		return err
	}
	target.SetString(name)
	return nil
}

func (templateMapper) Vars(*kong.Value) kong.Vars {
	return kong.Vars{"templates": strings.Join(starter.Templates(), ","), "template": starter.Default}
}

// Run writes a template, and says what was written and what comes next.
func (c *initCmd) Run(s streams) error {
	r, err := starter.Write(c.Folder, string(c.Template))
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, name := range r.Written {
		fmt.Fprintf(&b, "wrote %s\n", filepath.Join(c.Folder, filepath.FromSlash(name)))
	}
	for _, name := range r.Kept {
		fmt.Fprintf(&b, "kept  %s as it is: add /data/ to it, or the data becomes part of the repository\n",
			filepath.Join(c.Folder, filepath.FromSlash(name)))
	}
	b.WriteString("\nNext:\n")
	if filepath.Clean(c.Folder) != "." {
		fmt.Fprintf(&b, "  cd %s\n", c.Folder)
	}
	b.WriteString("  belfry serve    it prints a link that makes you the first admin, in the console\n")
	_, err = s.out.Write([]byte(b.String()))
	return err
}
