// Command plots draws what was measured, as SVG files: rates by the number of processes, measured and simulated, and
// what operations cost by the number of objects. `make plots` runs it.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("out", ".", "folder for the SVG files")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: plots [-out FOLDER] FILE...; files of bench/load -json, or of bench/scale "+
			"-json, which have simulated rates as well")
		os.Exit(2)
	}
	if err := run(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

func run(out string, files []string) error {
	var all []point
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var points []point
		if err := json.Unmarshal(text, &points); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, points...)
	}
	figures := figuresOf(all)
	if len(figures) == 0 {
		return errors.New("there are no points to draw")
	}
	for _, f := range figures {
		svg, err := f.draw()
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if err := os.WriteFile(filepath.Join(out, f.name+".svg"), svg, 0o644); err != nil {
			return err
		}
	}
	return nil
}
