package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"belfry/pkg/starter"
)

type initCmd struct {
	Folder   string `arg:"" optional:"" default:"." help:"The folder to write into (the current one); it is made if there is none." placeholder:"FOLDER"`
	Template string `help:"What to begin with: ${enum} (${default})." enum:"${templates}" default:"${template}" placeholder:"TEMPLATE"`
}

// Run writes a template, and says what was written and what comes next.
func (c *initCmd) Run(s streams) error {
	r, err := starter.Write(c.Folder, c.Template)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, name := range r.Written {
		fmt.Fprintf(&b, "wrote %s\n", filepath.Join(c.Folder, filepath.FromSlash(name)))
	}
	for _, name := range r.Kept {
		fmt.Fprintf(&b, "kept  %s as it is: add /data/ to it, or the data becomes part of the repository\n", filepath.Join(c.Folder, filepath.FromSlash(name)))
	}
	b.WriteString("\nNext:\n")
	if filepath.Clean(c.Folder) != "." {
		fmt.Fprintf(&b, "  cd %s\n", c.Folder)
	}
	b.WriteString("  belfry serve    it prints a link that makes you the first admin, in the console\n")
	_, err = s.out.Write([]byte(b.String()))
	return err
}
