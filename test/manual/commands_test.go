package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"belfry/test/kit"
	"belfry/test/kit/programs"
	"belfry/test/process"
)

// Blocks "```sh run" of a page are executed in their order, by one shell for each complete configuration before them,
// against a belfry that serves it. All configurations of a page serve the same data. The JSON that commands print is
// that of the block "```json output" after them, where "..." is any string, and the last key "...": "..." stands for
// further ones.
func TestCommandsOfPagesPrintWhatTheySay(t *testing.T) {
	for _, tool := range []string{"bash", "curl", "jq"} {
		if _, err := programs.Command(tool); err != nil {
			t.Fatal(err)
		}
	}
	program := process.Commands(t)
	found := 0
	pagesWithBlocks(t, func(t *testing.T, page string, blocks []block) {
		parts := partsOf(t, page, blocks)
		if len(parts) == 0 {
			return
		}
		found++
		t.Run(page, func(t *testing.T) {
			folder := t.TempDir()
			save(t, folder, blocks)
			for _, p := range parts {
				p.run(t, program, folder)
			}
		})
	})
	if found == 0 {
		t.Error("no page has commands to run")
	}
}

// part is a configuration and what is executed while it is served.
type part struct {
	yaml     string
	commands []shellLine
}

type shellLine struct {
	line   int
	text   string
	output string // JSON; "" where none is shown
}

func partsOf(t *testing.T, page string, blocks []block) (all []part) {
	t.Helper()
	yaml := ""
	for i, b := range blocks {
		switch {
		case b.configuration():
			yaml = b.text
		case b.language == "sh" && b.word == "run":
			if yaml == "" {
				t.Fatalf("%s:%d: commands without a complete configuration before them", page, b.line)
			}
			if len(all) == 0 || all[len(all)-1].yaml != yaml {
				all = append(all, part{yaml: yaml})
			}
			c := shellLine{line: b.line, text: b.text}
			if i+1 < len(blocks) && blocks[i+1].word == "output" {
				c.output = blocks[i+1].text
			}
			last := &all[len(all)-1]
			last.commands = append(last.commands, c)
		}
	}
	return all
}

// separator is between the outputs of blocks.
const separator = "\x1e"

func (p part) run(t *testing.T, program, folder string) {
	t.Helper()
	config := filepath.Join(folder, "belfry.yaml")
	write(t, config, freePorts(expand(t, folder, p.yaml)))
	server := process.ServePlain(t, config, "--listen", "127.0.0.1:0")
	defer func() {
		if err := server.Stop(); err != nil {
			t.Errorf("belfry ended with %v", err)
		}
	}()
	var script strings.Builder
	script.WriteString("belfry() { \"" + program + "\" \"$@\"; }\n")
	for _, c := range p.commands {
		script.WriteString(address.ReplaceAllString(c.text, strings.TrimPrefix(server.URL, "http://")))
		script.WriteString("\nprintf '\\036'\n")
	}
	ctx, cancel := context.WithTimeout(t.Context(), kit.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script.String())
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "BELFRY_CONFIG="+config)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Errorf("the commands ended with %v\n%s", err, problems.String())
	}
	printed := strings.Split(out.String(), separator)
	for i, c := range p.commands {
		if i >= len(printed) {
			t.Fatalf("line %d: not executed\n%s", c.line, problems.String())
		}
		if c.output == "" {
			continue
		}
		want, err := values(c.output)
		if err != nil {
			t.Fatalf("the output after line %d: %v", c.line, err)
		}
		got, err := values(printed[i])
		if err != nil || len(got) != len(want) || !like(got, want) {
			t.Errorf("line %d: the commands print\n%s\nand not\n%s%s", c.line, printed[i], c.output, problems.String())
		}
	}
}

var (
	address = regexp.MustCompile(`localhost:8080`)
	ports   = regexp.MustCompile(`(127\.0\.0\.1|localhost|0\.0\.0\.0)?:(8080|4222)\b`)
	busKey  = regexp.MustCompile(`(?m)^bus:`)
)

// freePorts is a configuration whose ports are free ones: tests run side by side.
func freePorts(yaml string) string {
	yaml = ports.ReplaceAllString(yaml, "127.0.0.1:0")
	if !busKey.MatchString(yaml) {
		yaml += "bus: {listen: \"\"}\n"
	}
	return yaml
}

// values are the JSON values of a text, one after the other.
func values(s string) (all []any, err error) {
	decoder := json.NewDecoder(strings.NewReader(s))
	for {
		var v any
		switch err := decoder.Decode(&v); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, err
		}
		all = append(all, v)
	}
}

// anything stands for a string, or as a key and its value for further properties.
const anything = "..."

func like(got, want any) bool {
	switch want := want.(type) {
	case string:
		text, ok := got.(string)
		return ok && (want == anything || text == want)
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return false
		}
		for i := range want {
			if !like(list[i], want[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range want {
			if key == anything {
				continue
			}
			if has, ok := object[key]; !ok || !like(has, value) {
				return false
			}
		}
		_, open := want[anything]
		return open || len(object) == len(want)
	}
	return reflect.DeepEqual(got, want)
}

func TestOutputsAreCompared(t *testing.T) {
	for _, c := range []struct {
		got, want string
		same      bool
	}{
		{`{"a":1,"b":"x"}`, `{"b":"...","a":1}`, true},
		{`{"a":1,"b":"x"}`, `{"a":1}`, false},
		{`{"a":1,"b":"x"}`, `{"a":1,"...":"..."}`, true},
		{`{"a":1}`, `{"a":1,"b":"..."}`, false},
		{`[1,2]`, `[1]`, false},
		{`[{"a":[]}]`, `[{"a":[]}]`, true},
		{`"x"`, `1`, false},
	} {
		got, err := values(c.got)
		if err != nil {
			t.Fatal(err)
		}
		want, err := values(c.want)
		if err != nil {
			t.Fatal(err)
		}
		if like(got, want) != c.same {
			t.Errorf("%s like %s: %v", c.got, c.want, !c.same)
		}
	}
}
