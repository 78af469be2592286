package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// record is an entry of a file, with its original fields.
type record map[string]string

// dataset holds the records of both files, in their order.
type dataset struct {
	countries    []record
	subdivisions []record
}

// readISO reads both files from a folder and converts them to objects: a
// subdivision gets the uuid of its country, and that of its parent.
func readISO(folder string) (*dataset, error) {
	d := &dataset{}
	for _, file := range []struct {
		part string
		into *[]record
	}{{"3166-1", &d.countries}, {"3166-2", &d.subdivisions}} {
		path := filepath.Join(folder, "iso_"+file.part+".json")
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var parts map[string][]record
		if err := json.Unmarshal(data, &parts); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if *file.into = parts[file.part]; len(*file.into) == 0 {
			return nil, fmt.Errorf("%s: there is no list %q in it", path, file.part)
		}
	}
	link(d.subdivisions)
	return d, nil
}

// link sets the country of each subdivision and the full code of its parent: some
// records have the part after the country only.
func link(subdivisions []record) {
	known := make(map[string]bool, len(subdivisions))
	for _, s := range subdivisions {
		known[s["code"]] = true
	}
	for _, s := range subdivisions {
		s["country"], _, _ = strings.Cut(s["code"], "-")
		if parent := s["parent"]; parent != "" && !known[parent] {
			s["parent"] = s["country"] + "-" + parent
		}
	}
}

// writeLines writes JSON lines, the format of `belfry import`.
func writeLines(path string, records []record) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	w := bufio.NewWriter(f)
	lines := json.NewEncoder(w)
	for _, r := range records {
		if err := lines.Encode(r); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// of returns the subdivisions of a country.
func (d *dataset) of(country string) []record {
	var found []record
	for _, s := range d.subdivisions {
		if s["country"] == country {
			found = append(found, s)
		}
	}
	return found
}

// largestParent returns the subdivision with the most children, and how many.
func (d *dataset) largestParent() (code string, children int) {
	count := map[string]int{}
	for _, s := range d.subdivisions {
		parent := s["parent"]
		if parent == "" {
			continue
		}
		if count[parent]++; count[parent] > children {
			code, children = parent, count[parent]
		}
	}
	return code, children
}
