package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write belfry.schema.json")

func TestTheSchemaIsThatOfWhatIsRead(t *testing.T) {
	documented := documentation(t)
	used := map[string]bool{}
	schema := schemaOf(func(path string) description {
		used[path] = true
		return documented[path]
	})
	for path := range documented {
		if !used[path] {
			t.Errorf("docs/configuration.md describes %s, which is not read", path)
		}
	}
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile(SchemaName, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(SchemaName+".gz", compress(t, text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	plain, err := os.ReadFile(SchemaName)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, Schema()) || !bytes.Equal(text, plain) {
		t.Errorf("config/%s is out of date: run `make schema`", SchemaName)
	}
}

// compress is that of a module whose version go.mod has, so that all releases of Go make the same bytes.
func compress(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write(text) // memory
	_ = w.Close()
	return b.Bytes()
}

// People read in docs/configuration.md which keys there are, so it has all.
func TestEveryKeyIsDocumented(t *testing.T) {
	documented := documentation(t)
	inProse := regexp.MustCompile(`^authentication\.providers\.(amazon|apple|discord|facebook|github|gitlab|google|linkedin|microsoft|slack|twitter|oidc|Any)\.`)
	var paths []string
	schemaOf(func(path string) description {
		paths = append(paths, path)
		return description{}
	})
	if len(paths) < 200 {
		t.Errorf("only %d keys were found", len(paths))
	}
	for _, path := range paths {
		section := slices.ContainsFunc(paths, func(other string) bool {
			return strings.HasPrefix(other, path+".") || strings.HasPrefix(other, path+"[].")
		})
		_, ok := documented[strings.TrimSuffix(path, "."+anyKey)]
		if !ok && !section && !strings.HasSuffix(path, "[]") && !inProse.MatchString(path) {
			t.Errorf("%s is in no table of docs/configuration.md", path)
		}
	}
}

var (
	heading    = regexp.MustCompile("^##+ `?([^`]*)`?$")
	underKey   = regexp.MustCompile("^`(providers\\.[a-z]+)`:$")
	inCode     = regexp.MustCompile("`([^`]+)`")
	linkedText = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)
)

// documentation reads the tables of docs/configuration.md: what they say about each path.
func documentation(t *testing.T) map[string]description {
	t.Helper()
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	named := []string{"backends", "stores", "mailers", "binaries"}
	all := map[string]description{}
	var prefixes, columns []string
	for line := range strings.SplitSeq(string(page), "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			prefixes = []string{m[1] + "."}
			switch {
			case m[1] == "Top level":
				prefixes = []string{""}
			case slices.Contains(named, m[1]):
				prefixes = []string{m[1] + ".Any."}
			case m[1] == "Mappings":
				prefixes = []string{"stores.Any.map.Any."}
			case m[1] == "Interceptors":
				prefixes = nil
				for _, operation := range operations() {
					prefixes = append(prefixes, "stores.Any.intercept."+operation+"[].")
				}
			}
			continue
		}
		if m := underKey.FindStringSubmatch(line); m != nil {
			prefixes = []string{"authentication." + m[1] + "."}
		}
		if !strings.HasPrefix(line, "| ") {
			if line != "" && !strings.HasPrefix(line, "|--") {
				columns = nil
			}
			continue
		}
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll(line, "| |", "|  |"), "| "), " |"), " | ")
		if slices.Contains(cells, "key") && slices.Contains(cells, "default") {
			columns = cells
			continue
		}
		if columns == nil || len(cells) < len(columns) {
			continue
		}
		cell := func(name string) string {
			i := slices.IndexFunc(columns, func(column string) bool { return strings.HasPrefix(column, name) })
			return linkedText.ReplaceAllString(cells[i], "$1")
		}
		d := description{meaning: meaning(cell("meaning"), cell("default")), initial: strings.Trim(cell("default"), "`")}
		last := ""
		for _, m := range inCode.FindAllStringSubmatch(cell("key"), -1) {
			key := strings.ReplaceAll(m[1], "<property>", anyKey)
			if strings.HasPrefix(key, ".") {
				key = last[:strings.LastIndexByte(last, '.')] + key
			}
			last = key
			for _, prefix := range prefixes {
				all[prefix+key] = d
			}
		}
	}
	return all
}

// meaning is the text of an editor about a key.
func meaning(text, initial string) string {
	if initial != "" && initial != "none" && initial != "*required*" {
		text = strings.TrimSpace(text + "\nDefault: " + initial)
	}
	return strings.TrimSpace(text)
}

// validator returns what validates a configuration by the schema alone.
func validator(t *testing.T) func(text []byte) error {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(SchemaName, parsed); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(SchemaName)
	if err != nil {
		t.Fatal(err)
	}
	return func(text []byte) error {
		var data any
		if err := yaml.Unmarshal(text, &data); err != nil {
			return err
		}
		asJSON, err := json.Marshal(data)
		if err != nil {
			return err
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
		if err != nil {
			return err
		}
		return schema.Validate(value)
	}
}

// The configurations of the repository are those that people copy.
func TestTheSchemaAcceptsEveryConfigurationOfTheRepository(t *testing.T) {
	validate := validator(t)
	found := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git" || entry.Name() == "data"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".yaml":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !regexp.MustCompile(`(?m)^stores:`).Match(text) {
			return nil
		}
		found++
		if err := validate(text); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 8 {
		t.Errorf("only %d configurations were found", found)
	}
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if err := validate(regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)[1]); err != nil {
		t.Errorf("the example of the documentation: %v", err)
	}
}

func TestTheSchemaAndBelfryRefuseTheSame(t *testing.T) {
	validate := validator(t)
	for text, good := range map[string]bool{
		"":                           true,
		"listen: \"${HOST}:80\"":     true,
		"development: ${DEVELOPING}": true,
		"limits: {address: {reads: 0, listBytes: 0}}":                                          true,
		"limits: {address: {reads: \"17\"}}":                                                   true,
		"tombstones: 1d12h":                                                                    true,
		"tombstones: 24":                                                                       false,
		"maxObjectSize: 64 KiB":                                                                true,
		"maxObjectSize: 64KB":                                                                  true,
		"maxObjectSize: many":                                                                  false,
		"log: {level: loud}":                                                                   false,
		"log:":                                                                                 true,
		"stores: {Books: {exposed: {}}}":                                                       false,
		"stores: {Books: {expose: {lists: true}}}":                                             false,
		"stores: {Books: {expose: {list: maybe}}}":                                             false,
		"stores: {Books: {policy: owner}}":                                                     true,
		"stores: {Books: {policy: everyone}}":                                                  false,
		"stores: {Books: {policy: {read: x}}}":                                                 false,
		"stores: {Books: {policy: {get: \"true\"}}}":                                           true,
		"stores: {Books: {indexes: title}}":                                                    false,
		"stores: {Books: {private: \"a, b\"}}":                                                 true,
		"stores: {Books: {private: [a, b]}}":                                                   true,
		"stores: {Books: {fields: {a: {read: \"true\"}}}}":                                     true,
		"stores: {Books: {fields: {a: {see: \"true\"}}}}":                                      false,
		"stores: {A: {}, B: {map: {A: {key: a}}}}":                                             false,
		"stores: {A: {}, B: {map: {A: {key: a, target: b, where: x}}}}":                        false,
		"stores: {B: {intercept: {save: [{timeout: 1s}]}}}":                                    false,
		"stores: {B: {intercept: {save: [{name: a, onError: panic}]}}}":                        false,
		"backends: {a: {folder: x}}":                                                           true,
		"backends: {a: {type: mongodb, database: x}}":                                          true,
		"backends: {a: {type: mongodb, folder: x}}":                                            false,
		"backends: {a: {database: x}}":                                                         false,
		"backends: {a: {type: sqlite}}":                                                        false,
		"mailers: {a: {type: smtp}}":                                                           false,
		"mailers: {a: {type: smtp, host: mail.example.com, port: 25}}":                         true,
		"mailers: {a: {type: smtp, host: mail.example.com, port: 70000}}":                      false,
		"binaries: {a: {type: S3Storage}}":                                                     false,
		"binaries: {a: {type: S3Storage, bucket: b, presign: 0s}}":                             true,
		"binaries: {a: {quota: {user: 0}}}":                                                    true,
		"authentication: {providers: {acme: {type: oidc, issuer: \"https://a.example.com\"}}}": true,
		"authentication: {providers: {acme: {type: oidc}}}":                                    false,

		"authentication: {providers: {apple: {clientID: a, teamID: b, keyID: c, privateKey: d, tokens: discard}}}": true,
		"authentication: {providers: {apple: {clientID: a, clientSecret: b}}}":                                     false,
		"authentication: {providers: {gitlab: {baseURL: \"https://a.example.com\"}}}":                              true,
		"authentication: {providers: {gitlab: {issuer: \"https://a.example.com\"}}}":                               false,
		"authentication: {providers: {gitlab: {type: oidc, issuer: \"https://a.example.com\"}}}":                   true,
		"authentication: {providers: {slack: {tokens: maybe}}}":                                                    false,
		"authentication: {encryptionKey: [" + strings.Repeat("A", 43) + "]}":                                       true,
		"authentication: {providers: {email: {form: x}}}":                                                          false,
		"authentication: {providers: {email: {mailInterval: 0}}}":                                                  true,
		"authentication: {providers: {github: {clientID: a, clientSecret: b, scope: [c], tokenURI: x}}}":           false,
		"bus: {url: \"nats://a.example.com, nats://b.example.com\"}":                                               true,
		"bus: {url: [\"nats://a.example.com\", \"nats://b.example.com\"], tls: {crt: x}}":                          false,
		"static: {spa: true}": false,
		"pages: {off: true}":  false,
	} {
		_, err := Parse("belfry.yaml", []byte(text), func(name string) (string, bool) {
			return map[string]string{"HOST": "127.0.0.1", "DEVELOPING": "true"}[name], true
		})
		if (err == nil) != good {
			t.Errorf("%s: belfry says %v", text, err)
		}
		if err := validate([]byte(text)); (err == nil) != good {
			t.Errorf("%s: the schema says %v", text, err)
		}
	}
}
