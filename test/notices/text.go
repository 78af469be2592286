package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// phrases are texts that occur in one license only, each with the name of the license in SPDX's list.
var phrases = []struct{ phrase, kind string }{
	{"Apache License Version 2.0", "Apache-2.0"},
	{"Licensed under the Apache License, Version 2.0", "Apache-2.0"},
	{"Mozilla Public License", "MPL-2.0"},
	{"Permission is hereby granted, free of charge, to any person obtaining a copy", "MIT"},
	{"Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby " +
		"granted, provided", "ISC"},
	{"Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby " +
		"granted. THE", "0BSD"},
	{"dedicate the work to the public domain", "CC0-1.0"},
	{"CC0 1.0 Universal", "CC0-1.0"},
	{"endorse or promote products derived from this software without specific", "BSD-3-Clause"},
	{"Additional IP Rights Grant (Patents)", ""}, // a promise besides a license
}

const bsd = "Redistribution and use in source and binary forms, with or without modification, are permitted"

// kinds returns the names of the licenses of a work.
func kinds(texts []string) (string, error) {
	var all []string
	for _, text := range texts {
		words := strings.Join(strings.Fields(text), " ")
		found := false
		for _, p := range phrases {
			if !strings.Contains(words, p.phrase) {
				continue
			}
			found = true
			if p.kind != "" && !slices.Contains(all, p.kind) {
				all = append(all, p.kind)
			}
		}
		if !found && strings.Contains(words, bsd) {
			found = true
			all = append(all, "BSD-2-Clause")
		}
		if !found {
			return "", errors.New("this license is not known to phrases in test/notices/text.go: read it, decide " +
				"whether belfry may be distributed with it, and add it")
		}
	}
	return strings.Join(all, ", "), nil
}

// notice returns the content of NOTICE.
func notice(all []work) []byte {
	var b strings.Builder
	b.WriteString("belfry\nCopyright 2026 the belfry authors\n\n")
	b.WriteString("belfry contains work of others, each under its own license. " + licensesFile +
		" has the texts of\nthese licenses.\n")
	for _, part := range []struct {
		title   string
		modules bool
	}{{"Embedded files", false}, {"Compiled into the program", true}} {
		fmt.Fprintf(&b, "\n%s:\n\n", part.title)
		for _, w := range all {
			if w.module == part.modules {
				fmt.Fprintf(&b, "  %s (%s)\n", w.name, w.kind)
			}
		}
	}
	for _, w := range all {
		for _, text := range w.notices {
			fmt.Fprintf(&b, "\n%s\nNotice of %s:\n\n%s\n", rule, w.name, text)
		}
	}
	return []byte(b.String())
}

var rule = strings.Repeat("-", 80)

// licenses returns the content of THIRD_PARTY_LICENSES: each text once, after the names of the works that it is for.
func licenses(all []work) []byte {
	users := map[string][]string{}
	var texts []string
	for _, w := range all {
		for _, text := range w.licenses {
			if users[text] == nil {
				texts = append(texts, text)
			}
			users[text] = append(users[text], w.name)
		}
	}
	var b strings.Builder
	b.WriteString("The licenses of the work of others that belfry contains. NOTICE has an overview.\n")
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s:\n\n%s\n", rule, strings.Join(users[text], "\n"), text)
	}
	return []byte(b.String())
}
