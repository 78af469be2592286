package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app/command"
	"belfry/pkg/app/plan"
)

// newFolders makes a folder with folders, files that are empty but for a few, and links (from=to).
func newFolders(t *testing.T, names ...string) string {
	t.Helper()
	// Where temporary folders are is a link itself on some systems; messages have no paths, so it makes no difference.
	root := t.TempDir()
	for _, name := range names {
		from, to, link := strings.Cut(name, "=")
		path := filepath.Join(root, from)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		switch {
		case err != nil:
		case link:
			err = os.Symlink(strings.ReplaceAll(to, "ROOT", root), path)
		case strings.HasSuffix(from, "/"):
			err = os.MkdirAll(path, 0o755)
		case strings.HasSuffix(from, ".json"):
			err = os.WriteFile(path, []byte(`{"type":"object"}`), 0o600)
		default:
			err = os.WriteFile(path, nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// checked returns what Check says of a configuration in root/etc, without the position and the advice.
func checked(t *testing.T, root, text, data string) string {
	t.Helper()
	c, err := config.Parse(filepath.Join(root, "etc", "belfry.yaml"), []byte(text), os.LookupEnv)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if data != "" {
		data = filepath.Join(root, data)
	}
	if err := c.Override("127.0.0.1:0", data); err != nil {
		t.Fatal(err)
	}
	var all []string
	if err := plan.Check(c); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if strings.Contains(strings.TrimPrefix(line, filepath.Join(root, "etc")), root) {
				t.Errorf("the message has a path: %s", line)
			}
			_, line, _ = strings.Cut(line, "belfry.yaml:")
			if parts := strings.SplitN(line, ": ", 2); len(parts) == 2 {
				line = parts[1]
			}
			for _, advice := range []string{": the files in this folder are public; choose a folder that has " +
				"nothing else", "; choose a folder of its own"} {
				line = strings.ReplaceAll(line, advice, "")
			}
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// What belfry writes, and what it reads, is not what it serves. Each way to name the one or the other is tried with
// both keys of folders that are served.
func TestAServedFolderHasNothingElse(t *testing.T) {
	root := newFolders(t, "front/", "front/in/", "etc/", "front/key.json", "front/in/data/", "outside/",
		"outside/key.json",
		"toFront=front", "front/toKey=../outside/key.json", "toKey=front/key.json", "toNew=front/in/new", "loop=loop",
		"front/.hidden/", "etc/front/", "etc/data/front/", "links/a=ROOT/front/in")
	bus := "bus: {url: 'nats://127.0.0.1:4222', "
	for text, want := range map[string]string{
		"":                          "",
		"data: ../data":             "",
		"data: ../frontier":         "",
		"data: ../front":            "is data",
		"data: ../front/data":       "contains data",
		"data: ../front/.hidden":    "contains data",
		"data: ..":                  "is in data",
		"data: ../toFront/data":     "contains data",
		"data: ../toFront":          "is data",
		"data: ../toNew":            "contains data",
		"data: ../toNew/below/it":   "contains data",
		"data: ../links/a/data":     "contains data",
		"data: ../loop":             "",
		"data: ../front/in/../../x": "",
		"mailers: {default: {folder: ../front/mail}}":                       "contains mailers.default.folder",
		"mailers: {m: {folder: ../toFront}}":                                "is mailers.m.folder",
		"backends: {b: {folder: ../front/b}}":                               "contains backends.b.folder",
		"binaries: {b: {folder: ../front/b}}":                               "contains binaries.b.folder",
		"binaries: {b: {folder: ..}}":                                       "is in binaries.b.folder",
		"backup: {folder: ../toNew}":                                        "contains backup.folder",
		"baseURL: https://a.example.com\nhttp: {acme: {storage: ../front}}": "is http.acme.storage",
		"stores: {A: {schema: ../front/key.json}}":                          "contains the file of stores.A.schema",
		"stores: {A: {schema: ../front/toKey}}":                             "contains the file of stores.A.schema",
		"stores: {A: {schema: ../toKey}}":                                   "contains the file of stores.A.schema",
		"stores: {A: {schema: ../outside/key.json}}":                        "",
		bus + "credentials: ../front/key.json}":                             "contains the file of bus.credentials",
		bus + "tls: {ca: ../front/key.json}}":                               "contains the file of bus.tls.ca",
		"data: ../front/data\nmailers: {m: {folder: ../front/mail}}":        "contains data, contains mailers.m.folder",
		"data: ../front/data\nmailers: {m: {folder: ../front/data/m}}":      "contains data, contains mailers.m.folder",
	} {
		for _, served := range []string{"static", "pages"} {
			full := want
			if want != "" {
				full = served + ".folder: " + want
			}
			if got := checked(t, root, text+"\n"+served+": {folder: ../front}\n", ""); got != full {
				t.Errorf("%s, %s: %q, want %q", text, served, got, full)
			}
		}
	}
	for text, want := range map[string]string{
		"static: {folder: .}":                             "static.folder: contains this configuration, contains data",
		"static: {folder: ..}":                            "static.folder: contains this configuration, contains data",
		"static: {folder: data/front}":                    "static.folder: is in data",
		"static: {folder: front}":                         "",
		"static: {folder: front}\npages: {folder: front}": "",
	} {
		if got := checked(t, root, text, ""); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	// A flag names the data folder instead.
	if got := checked(t, root, "static: {folder: ../front}", "front/in"); got != "static.folder: contains data" {
		t.Error(got)
	}
	if got := checked(t, root, "data: ../front\nstatic: {folder: ../front}", "outside"); got != "" {
		t.Error(got)
	}
}

// Two things that are written into one folder remove or overwrite each other.
func TestWhatIsWrittenHasAFolderOfItsOwn(t *testing.T) {
	root := newFolders(t, "etc/nats.conf", "a/", "toA=a", "toNew=a/new", "etc/data/", "etc/front/")
	if err := os.WriteFile(filepath.Join(root, "etc", "nats.conf"), []byte("jetstream { store_dir: "+root+"/nats }\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"backends: {a: {folder: ../a}, b: {folder: ../toA}}": "backends.b.folder: " +
			"is backends.a.folder",
		"backends: {a: {folder: ../a/new}}\nbinaries: {b: {folder: ../toNew}}": "binaries.b.folder: " +
			"is backends.a.folder",
		"binaries: {a: {folder: ../a, expose: {url: /a}}, b: {folder: ../a}}": "binaries.b.folder: " +
			"is binaries.a.folder",
		"binaries: {a: {folder: ../a, expose: {url: /a}}, b: {folder: ../a/b}}": "",
		"binaries: {a: {folder: ../a}}\nbackup: " +
			"{folder: ../toA}": "backup.folder: is binaries.a.folder",
		"mailers: {a: {}, b: {folder: data/mail}}": "",
		"mailers: {a: {folder: data}}":             "mailers.a.folder: is data",
		"mailers: {a: {folder: data/stores/default}}": "mailers.a.folder: is " +
			"the folder of backends.default.folder, which is a default",
		"backends: {a: {folder: data/mail}}": "backends.a.folder: " +
			"is the folder of mailers.default.folder, which is a default",
		"backup: {folder: data}":        "backup.folder: is data",
		"backup: {folder: data/backup}": "",
		"backup: {folder: data/search}": "backup.folder: is " +
			"the folder of the indexes of search",
		"binaries: {a: {folder: data/bus/jetstream/x}}": "binaries.a.folder: is " +
			"in the folder of the embedded bus",
		"bus: {config: nats.conf}\nbinaries: {a: {folder: ../nats/jetstream}}": "binaries.a.folder: " +
			"is the folder of the embedded bus",
		"baseURL: https://a.example.com\nhttp: {acme: {}}\nmailers: {a: {folder: data/acme}}": "mailers.a.folder: is " +
			"the folder of http.acme.storage, which is a default",
	} {
		if got := checked(t, root, text, ""); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	c, err := config.Parse(filepath.Join(root, "etc", "belfry.yaml"),
		[]byte("static: {folder: front}\nbinaries: {a: {folder: files}}\nbackup: {folder: saved}\n"), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	for to, want := range map[string]string{
		"front": "is static.folder, whose files are public", "front/in": "is in static.folder",
		".": "contains static.folder", "data": "is data", "files": "is the place of the files of binaries.a",
		"data/bus/jetstream": "is the folder of the embedded bus", "elsewhere": "", "saved": "",
	} {
		_, err := command.NewBackupPlace(c, &config.BackupPlace{Folder: filepath.Join(root, "etc", to)})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", to, err)
		}
	}
}
