package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"belfry/config/decode"
	"belfry/config/value"
	manual "belfry/test/manual/keys"
	"belfry/test/manual/site"
)

var update = flag.Bool("update", false, "write belfry.schema.json and docs/reference/configuration.md")

const keysFile, pageFile = "../test/manual/keys/keys.yaml", "../docs/reference/configuration.md"

// words matches the words of a page; the bars of a table are none.
var words = regexp.MustCompile(`\S*[\pL\pN]\S*`)

func TestTheSchemaIsThatOfWhatIsRead(t *testing.T) {
	documented := documentation(t)
	used := map[*manual.Key]bool{}
	schema := schemaOf(&decode.Schema{Describe: func(path string) decode.Description {
		if k := documented.Find(path); k != nil {
			used[k] = true
			return descriptionOf(k)
		}
		if s := documented.FindSection(path); s != nil {
			return decode.Description{Meaning: s.Summary}
		}
		return decode.Description{}
	}})
	for _, k := range documented.Keys() {
		if !used[k] {
			t.Errorf("%s describes %s, which is not read", keysFile, k.Path)
		}
	}
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	page, err := documented.Page(decode.PolicyOf[Config])
	if err != nil {
		t.Fatal(err)
	}
	if n := len(words.FindAllString(string(page), -1)); n > 8000 {
		t.Errorf("docs/reference/configuration.md has %d words, and at most 8,000 are read", n)
	}
	text = append(text, '\n')
	upToDate(t, SchemaName, text)
	upToDate(t, SchemaName+".gz", site.Compress(text))
	upToDate(t, pageFile, page)
}

// upToDate compares a file with what it has to be, or writes it.
func upToDate(t *testing.T, name string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("config/%s is out of date: run `make schema`", name)
	}
}

// People read in docs/reference/configuration.md which keys there are, so test/manual/keys/keys.yaml has all.
func TestEveryKeyIsDocumented(t *testing.T) {
	documented := documentation(t)
	var paths []string
	walkKeys(func(path string, _ *decode.Key, _ any) { paths = append(paths, path) })
	if len(paths) < 200 {
		t.Errorf("only %d keys were found", len(paths))
	}
	for _, path := range paths {
		section := slices.ContainsFunc(paths, func(other string) bool {
			return strings.HasPrefix(other, path+".") || strings.HasPrefix(other, path+"[].")
		})
		if documented.Find(path) == nil && !section && !strings.HasSuffix(path, "[]") {
			t.Errorf("%s is not in %s", path, keysFile)
		}
	}
	for _, k := range documented.Keys() {
		if k.Meaning == "" || k.Type.String() == "" {
			t.Errorf("%s: %s has no meaning or no type", keysFile, k.Path)
		}
	}
}

// walkKeys calls visit for each key of the configuration.
func walkKeys(visit func(path string, k *decode.Key, initial any)) {
	schemaOf(&decode.Schema{Describe: func(string) decode.Description { return decode.Description{} }, Visit: visit})
}

// What test/manual/keys/keys.yaml says about defaults, required keys and choices is compared with the tags.
func TestTypesAndDefaultsAreThoseOfWhatIsRead(t *testing.T) {
	documented := documentation(t)
	required := map[*manual.Key]bool{}
	checked := 0
	walkKeys(func(path string, key *decode.Key, initial any) {
		k := documented.Find(path)
		if k == nil {
			return
		}
		if initial != nil && k.DefaultIs == "" && !k.Required {
			checked++
			got := fmt.Sprint(initial)
			if k.Default != got && !sameDuration(k.Default, got) {
				t.Errorf("the default of %s is %s, and config/%s says %q", path, got, keysFile, k.Default)
			}
		}
		for _, choice := range key.Format.Choices {
			checked++
			if !slices.Contains(k.Type.Values, choice) && !strings.Contains(k.Type.Text, "`"+choice+"`") &&
				!strings.Contains(k.Type.Text, "the provider's name") {
				t.Errorf("%s can be %s, which config/%s does not say", path, choice, keysFile)
			}
		}
		if key.Format.IsFlag() && k.Type.Text != "boolean" {
			t.Errorf("%s is a boolean, and config/%s says %s", path, keysFile, k.Type)
		}
		if key.Required == "" {
			return
		}
		required[k] = true
		if !k.Required && !strings.HasPrefix(k.DefaultIs, "*required*") {
			t.Errorf("%s is required, which config/%s does not say", path, keysFile)
		}
	})
	for _, k := range documented.Keys() {
		if k.Required && !required[k] {
			t.Errorf("%s is not required, and config/%s says so", k.Path, keysFile)
		}
	}
	if checked < 60 {
		t.Errorf("only %d facts were compared", checked)
	}
}

func sameDuration(a, b string) bool {
	duration := value.FormatOf("duration 0s")
	x, err1 := duration.Parse("", a)
	y, err2 := duration.Parse("", b)
	return err1 == nil && err2 == nil && x == y
}

// A key of a later release says so.
func TestReleasesOfKeysAreInTheChangelog(t *testing.T) {
	changes, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range documentation(t).Keys() {
		if k.Since != "" && !strings.Contains(string(changes), "\n## "+k.Since) {
			t.Errorf("%s is since %s, which CHANGELOG.md does not have", k.Path, k.Since)
		}
	}
}

// documentation reads what the documentation says about each key.
func documentation(t *testing.T) *manual.File {
	t.Helper()
	f, err := manual.Read(keysFile)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func descriptionOf(k *manual.Key) decode.Description {
	d := decode.Description{Meaning: k.Description()}
	if k.DefaultIs == "" {
		d.Default = k.Default
	}
	return d
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
	if err := validate(documentedExample(t)); err != nil {
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
		"stores: {A: {}, B: {map: {A: {target: a}}}}":                                          false,
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

		"authentication: {providers: {apple: {clientID: a, teamID: b, keyID: c, privateKey: d, tokens: " +
			"discard}}}": true,
		"authentication: {providers: {apple: {clientID: a, clientSecret: b}}}":                           false,
		"authentication: {providers: {gitlab: {baseURL: \"https://a.example.com\"}}}":                    true,
		"authentication: {providers: {gitlab: {issuer: \"https://a.example.com\"}}}":                     false,
		"authentication: {providers: {gitlab: {type: oidc, issuer: \"https://a.example.com\"}}}":         true,
		"authentication: {providers: {slack: {tokens: maybe}}}":                                          false,
		"authentication: {encryptionKey: [" + strings.Repeat("A", 43) + "]}":                             true,
		"authentication: {providers: {email: {form: x}}}":                                                false,
		"authentication: {providers: {email: {mailInterval: 0}}}":                                        true,
		"authentication: {providers: {github: {clientID: a, clientSecret: b, scope: [c], tokenURI: x}}}": false,
		"bus: {url: \"nats://a.example.com, nats://b.example.com\"}":                                     true,
		"bus: {url: [\"nats://a.example.com\", \"nats://b.example.com\"], tls: {crt: x}}":                false,
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

// schemaOf makes the schema from the types that a configuration is read into.
func schemaOf(b *decode.Schema) decode.Fragment {
	root := b.Section("", &Config{}, "")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "belfry's configuration"
	root["description"] = "Printed by `belfry config schema`."
	return root
}
