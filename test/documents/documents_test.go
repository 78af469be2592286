// Package documents checks the OpenAPI and the AsyncAPI document with third-party linters, against those of before, and
// against the replies and events of a running belfry. It also checks the alerts and the board for monitoring against
// the metrics that belfry has.
package documents

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app"
	"belfry/pkg/app/plan"
	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/process"
)

func TestMain(m *testing.M) { process.Main(m) }

// secret is in the configurations, and must not be in a document.
const secret = "very-secret"

// everything is a configuration that uses every documented feature.
const everything = "testdata/everything.yaml"

// load reads a configuration, with a data folder of the test.
func load(t *testing.T, file string, replace ...string) *config.Config {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(replace...).Replace(string(data))
	c, err := config.Parse(file, []byte(text), func(name string) (string, bool) {
		switch name {
		case "BUS_PASSWORD":
			return secret, true
		case "APPLE_KEY":
			return appleKey(t), true
		}
		return "", false
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Override("", t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return c
}

// writers returns the functions that write the documents.
func writers() map[string]func(*config.Config) ([]byte, error) {
	return map[string]func(*config.Config) ([]byte, error){"openapi": plan.OpenAPI, "openapi30": plan.OpenAPI30,
		"asyncapi": plan.AsyncAPI}
}

// lint runs the linters on documents and returns the problems of each. They take seconds to start.
func lint(t *testing.T, documents map[string][]byte) map[string][]string {
	t.Helper()
	folder := t.TempDir()
	args := []string{filepath.Join(backing.NPM(t, "test/servers/documents"), "lint.js")}
	for name, text := range documents {
		file := filepath.Join(folder, name+".json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	cmd := exec.CommandContext(t.Context(), "node", args...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the linters: %v\n%s", err, &complaints)
	}
	said := map[string][]string{}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("output of the linters: %s: %v", out, err)
	}
	found := map[string][]string{}
	for file, problems := range said {
		found[strings.TrimSuffix(filepath.Base(file), ".json")] = problems
	}
	return found
}

// The linters accept the documents of every shipped configuration, of an empty
// one, and of one with every feature. They report an error in each invalid document.
func TestLintersAcceptTheDocuments(t *testing.T) {
	documents, broken := validDocuments(t), invalidDocuments(t)
	all := maps.Clone(documents)
	maps.Copy(all, broken)
	found := lint(t, all)
	for name := range documents {
		for _, p := range found[name] {
			t.Errorf("%s: %s", name, p)
		}
	}
	for name := range broken {
		if len(found[name]) == 0 {
			t.Errorf("%s is not refused", name)
		}
	}
	if len(found) != len(all) {
		t.Errorf("the linters report on %d documents of %d", len(found), len(all))
	}
}

func validDocuments(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../../config/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("configurations: %v, %v", files, err)
	}
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	documents, known := map[string][]byte{}, map[string]bool{}
	for _, file := range append(files, "../../config/testdata/full.yaml", everything, empty) {
		c := load(t, file)
		for kind, write := range writers() {
			text, err := write(c)
			if err != nil {
				t.Fatalf("%s of %s: %v", kind, file, err)
			}
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("%s of %s has a secret in it", kind, file)
			}
			if known[string(text)] {
				continue // configurations that differ in their backend have one document
			}
			known[string(text)] = true
			documents[strings.TrimSuffix(filepath.Base(file), ".yaml")+"-"+kind] = text
		}
	}
	return documents
}

// invalidDocuments are documents with one error each, which is their name.
func invalidDocuments(t *testing.T) map[string][]byte {
	t.Helper()
	c := load(t, "testdata/small.yaml") // a linter takes seconds for a large document
	openapi, err := plan.OpenAPI(c)
	if err != nil {
		t.Fatal(err)
	}
	asyncapi, err := plan.AsyncAPI(c)
	if err != nil {
		t.Fatal(err)
	}
	broken := map[string][]byte{}
	for name, change := range map[string]struct {
		text     []byte
		old, new string
	}{
		"a dangling reference": {openapi, `"#/components/schemas/BooksInput"`,
			`"#/components/schemas/BooksOutput"`},
		"an operation's id twice":         {openapi, `"operationId": "createBooks"`, `"operationId": "createAuthors"`},
		"a parameter that is not in path": {openapi, `"name": "hash",`, `"name": "cash",`},
		"an unknown keyword":              {openapi, `"prefixItems"`, `"firstItems"`},
		"an invalid status":               {openapi, `"304":`, `"3044":`},
		"an invalid example":              {openapi, `"examples": [`, `"examples": [5,`},
		"no action":                       {asyncapi, `"action": "send",`, `"axion": "send",`},
		"a missing channel":               {asyncapi, `"#/channels/saveBooks"`, `"#/channels/saveCooks"`},
		"a missing message": {asyncapi, `"#/components/messages/BooksSaved"`,
			`"#/components/messages/CooksSaved"`},
		"a missing parameter": {asyncapi, `"address": "dead.{listener}"`, `"address": "dead.{consumer}"`},
		"an invalid type":     {asyncapi, `"type": "object"`, `"type": "thing"`},
	} {
		if !bytes.Contains(change.text, []byte(change.old)) {
			t.Fatalf("%s: there is no %s", name, change.old)
		}
		broken[name] = bytes.ReplaceAll(change.text, []byte(change.old), []byte(change.new))
	}
	return broken
}

// start serves a configuration in this process.
func start(t *testing.T, c *config.Config) *app.App {
	t.Helper()
	a, err := app.Start(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return a
}

// The documents that belfry serves equal those of its commands.
func TestServedDocumentsEqualThoseOfTheCommands(t *testing.T) {
	folder := t.TempDir()
	flags := []string{"--data", folder, "--listen", "127.0.0.1:" + strconv.Itoa(kit.FreePort(t))}
	s := process.ServePlain(t, everything, flags...)
	for _, kind := range []string{"openapi", "asyncapi"} {
		res, text := get(t, s.URL+"/"+kind+".json", nil)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" ||
			res.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %s, %v", kind, res.Status, res.Header)
		}
		tag := res.Header.Get("Etag")
		for match, status := range map[string]int{tag: 304, "W/" + tag: 304, "*": 304, `"other"`: 200, "bad": 400} {
			if res, _ := get(t, s.URL+"/"+kind+".json",
				http.Header{"If-None-Match": {match}}); res.StatusCode != status {
				t.Errorf("%s: If-None-Match: %s is answered with %s", kind, match, res.Status)
			}
		}
		for range 2 {
			out, complaints, exit, err := process.Run(process.Commands(t),
				append([]string{kind, "--config", everything}, flags...)...)
			if err != nil || exit != 0 {
				t.Fatalf("belfry %s: %v, %d\n%s", kind, err, exit, complaints)
			}
			if out != text {
				t.Errorf("the document of belfry %s differs from /%s.json", kind, kind)
			}
		}
		if strings.Contains(text, secret) {
			t.Errorf("%s has a secret in it", kind)
		}
	}
}

// The commands report an error in the configuration.
func TestCommandsRefuseAnInvalidConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(file, []byte("stores: {A: {policy: {get: 1 +}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"openapi", "asyncapi"} {
		out, complaints, exit, err := process.Run(process.Commands(t), kind, "--config", file)
		if err != nil || exit != 2 || out != "" || !strings.Contains(complaints, "stores.A.policy.get") {
			t.Errorf("belfry %s: %v, %d, %q, %q", kind, err, exit, out, complaints)
		}
	}
}
