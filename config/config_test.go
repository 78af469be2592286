package config

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"belfry/internal/thumbnail"
	"belfry/pkg/errs"
)

// environment is the environment of these tests.
func environment(name string) (string, bool) {
	value, set := map[string]string{
		"BUS_PASSWORD": "hunter2", "PORT": "8099", "EMPTY": "", "NOISE": "a: {b: [${PORT}", "LATIN": "caf\xe9",
	}[name]
	return value, set
}

func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("belfry.yaml", []byte(text), environment)
	if err != nil {
		t.Fatalf("unexpected problems:\n%v", err)
	}
	return c
}

func absPath(t *testing.T, elements ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// equal compares a part of a configuration.
func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %#v\nwant %#v", what, got, want)
	}
}

func TestEveryKeyIsRead(t *testing.T) {
	c, err := Load("testdata/full.yaml", environment)
	if err != nil {
		t.Fatal(err)
	}
	data, recipe := absPath(t, "testdata/var"), absPath(t, "testdata/schemas/recipe.json")
	local := "http://127.0.0.1:1/"

	equal(t, "listen", c.Listen, "0.0.0.0:9000")
	equal(t, "baseURL", c.BaseURL, "https://kitchen.example.org/api")
	equal(t, "data", c.Data, data)
	equal(t, "hosts", c.Hosts, []string{"kitchen.local", "2001:db8::1", "10.0.0.1"})
	equal(t, "proxies", c.Proxies,
		[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")})
	equal(t, "maxObjectSize", c.MaxObjectSize, int64(128<<10))
	equal(t, "tombstones", c.Tombstones, 48*time.Hour)
	equal(t, "shutdownTimeout", c.ShutdownTimeout, 90*time.Second)
	equal(t, "shutdownDelay", c.ShutdownDelay, 7*time.Second)
	equal(t, "fillRate", c.FillRate, 50)
	equal(t, "log", c.Log, Log{slog.LevelDebug, "json"})
	equal(t, "metrics", c.Metrics, Metrics{"127.0.0.1:9001", "0123456789abcdef"})
	equal(t, "bus", c.Bus, Bus{
		URL:  []string{"nats://n1:4222", "tls://n2:4222"},
		User: "kitchen", Password: "hunter2", TLS: TLS{recipe, recipe, recipe},
		Events: Events{30 * 24 * time.Hour, 10_000_000_000, 5000}, Replicas: 3,
	})
	equal(t, "events", c.Events, EventStreams{Clients: 500, Address: 20, Heartbeat: 5 * time.Second, Buffer: 1 << 20})
	equal(t, "documents", c.Documents, Documents{OpenAPI: true})
	equal(t, "static", c.Static,
		&Static{Folder: absPath(t, "testdata/front"), SPA: true, Immutable: []string{"assets", "a/b"}})
	equal(t, "pages", c.Pages,
		Pages{Enabled: true, Folder: absPath(t, "testdata/theme"), Languages: absPath(t, "testdata/theme"), Paths: map[string]string{"login": "/login"}})
	equal(t, "branding", c.Branding, Branding{"Kitchen", absPath(t, "testdata/logo.svg"), "#7a1f5c"})
	equal(t, "backends", c.Backends, map[string]Backend{
		"default": {Type: "file", File: &FileBackend{absPath(t, "testdata/objects"), 256 << 20}},
		"mongo": {Type: "mongodb",
			MongoDB: &MongoBackend{"mongodb://u:hunter2@a:1,b:2/?replicaSet=x", "kitchen", ""}},
		"dynamo": {Type: "dynamodb", DynamoDB: &DynamoBackend{"eu-north-1", "http://127.0.0.1:8000", "k_", ""}},
	})
	equal(t, "names of stores",
		names(c.Stores), []string{"Contents", "Cooks", "LogPositions", "Logins", "Members", "Recipes", "Requests",
			"SealKeys", "Sessions", "Tokens", "UploadQuotas"})
	equal(t, "stores.Recipes", *c.Stores["Recipes"], Store{
		Name: "Recipes", Backend: "dynamo", Schema: recipe, MaxObjectSize: 64 << 10,
		Expose: &Expose{URL: "/cooking/recipes", Restrict: Restrict{Update: true}, List: true, Events: true,
			EventsAsList: true},
		Policy: Policy{Create: "user != null", Get: "true", Update: "object.cook == user.uuid", Delete: "false",
			List: "true"},
		References: map[string]Reference{}, Copies: map[string]Copy{},
		Map: map[string]Mapping{
			"Cooks": {Key: "cook", Target: "recipes", Fields: []string{"name", "minutes"}, Limit: 50,
				MaxBytes: 1 << 20},
			"Recipes": {Key: "partOf", Target: "parts", Limit: 10_000, MaxBytes: 256 << 10,
				When: "source.published == true"},
		},
		Fields:  map[string]Field{"price": {Read: "user != null", Write: "user.chef == true"}},
		Private: []string{"notes", "cost"}, ReadOnly: []string{"stars"},
		Computed: map[string]string{"label": `name + "!"`},
		Indexes:  [][]string{{"name"}, {"cuisine", "minutes"}, {"created"}},
		Intercept: Interceptors{
			"save":   {{"spelling", time.Second, "reject"}, {"taste", 250 * time.Millisecond, "accept"}},
			"delete": {{"spelling", time.Second, "reject"}},
		},
	})
	equal(t, "stores.Cooks.bus", c.Stores["Cooks"].Bus, true)
	equal(t, "stores.Cooks.maxObjectSize", c.Stores["Cooks"].MaxObjectSize, int64(128<<10))
	equal(t, "stores.Members.policy", c.Stores["Members"].Policy, Policy{Owner: true})
	equal(t, "stores.Members.private", c.Stores["Members"].Private, []string{"shoeSize", "password"})
	equal(t, "stores.Members.fields", c.Stores["Members"].Fields, map[string]Field{"idents": {Read: "isOwner"}})
	equal(t, "authentication", c.Authentication, Authentication{
		BrowserRedirects: BrowserRedirects{
			SuccessRedirect: "https://kitchen.example.org/welcome", FailureRedirect: "/sorry",
			RegisterRedirect: "/join", RecoveryRedirect: "/again",
			SecondFactorRedirect: "/step", MailLoginRedirect: "/by-mail", AddressRedirect: "/moved",
			AccountRedirect: "/me",
		},
		Cookie: "kitchen", MFA: MFA{"required", "user.cook == true"},
		TrustedOrigins: []string{"https://app.example.org"}, Limits: Limits{10, 3},
		Deletion:  Deletion{Enabled: true, Grace: 14 * day},
		Passwords: Passwords{false, 3, Breached{"https://breaches.example.org/range", 2 * time.Second, 10}},
		Redirects: []string{"https://menu.example.org/in", "org.example.kitchen:/in", "http://127.0.0.1/in"},
		Places:    absPath(t, "../pkg/account/places/testdata/GeoLite2-City-Test.mmdb"),
		Audit:     "user.auditor == true", UserStore: "Members", IdentStore: "Logins",
		ProviderSet: ProviderSet{Email: &Email{
			From:       "Kitchen <kitchen@example.org>",
			MailText:   MailText{"One more step", `<a href="{{.Link}}">yes, me</a>`, "yes, me: {{.Link}}"},
			Recovery:   MailText{"Once more", `<a href="{{.Link}}">again</a>`, "again: {{.Link}}"},
			Invitation: MailText{"Come in", `<a href="{{.Link}}">in</a>`, "in: {{.Link}}"},
			Taken:      MailText{"There you are", "<p>{{.Login}}</p>", "{{.Login}}"},
			Change:     MailText{"New", "<p>{{.Link}}</p>", "new {{.Link}}"},
			Undo:       MailText{"Old", "<p>{{.Link}}</p>", "old {{.Link}}"},
			Notices: Notices{
				Kinds: map[string]Notice{"password": {MailText: MailText{"Psst", "<p>{{.Time}}</p>", "{{.Time}}"}}}},
			Login: MailLogin{
				Code: true, Link: true, TTL: 5 * time.Minute,
				CodeMail: MailText{"Digits", "<b>{{.Token}}</b>", "{{.Token}}"},
				LinkMail: MailText{"Come in", `<a href="{{.Link}}">in</a>`, "in: {{.Link}}"},
			},
			Mailer: "post", PostValidation: true, SkipEmailValidation: true,
			TokenTTL: time.Hour, RecoveryTTL: 10 * time.Minute, MailInterval: 5 * time.Minute, UniformErrors: true,
		},
			OAuth2: map[string]OAuth2{
				"github": {ClientID: "gh", ClientSecret: "hunter2", Scope: []string{"user:email"}, AuthURL: local + "a",
					TokenURL: local + "t", ProfileURL: local + "p"},
				"amazon": {},
			},
			Twitter: &OAuth1{"tw", "s", local + "r", local + "z", local + "x", local + "p"},
			OIDC: map[string]OIDC{"company": {Issuer: "https://id.example.org", ClientID: "kitchen",
				Scope: []string{"openid"}}},
		}})
	equal(t, "enabled providers", c.Authentication.Providers(), []string{"company", "email", "github", "twitter"})
	equal(t, "mailers", c.Mailers, map[string]Mailer{
		"default": {Type: "file", File: &FileMailer{filepath.Join(data, "mail")}},
		"post": {Type: "smtp",
			SMTP: &SMTPMailer{"smtp.example.org", 2525, "kitchen", "hunter2", "tls", "kitchen.example.org"}},
		"drawer": {Type: "file", File: &FileMailer{absPath(t, "testdata/letters")}},
	})
	equal(t, "binaries", c.Binaries, map[string]*Binary{
		"photos": {
			Type: "FileStorage", File: &FileStorage{filepath.Join(data, "binaries", "photos")},
			BinaryExpose: BinaryExpose{"/photos", BinaryRestrict{Delete: true}}, MaxSize: 3 << 20, Grace: time.Hour,
			Quota: Quota{1 << 30, 0}, Types: []string{"image/*", "application/pdf"},
			Thumbs: []thumbnail.Size{{Width: 90, Height: 60}, {Width: 800}},
			Map: map[string]FileProperties{
				"Recipes": {Names: []string{"pictures", "steps"}}, "Members": {Names: []string{"portrait"}},
				"Cooks": {[]string{"faces", "letters"},
					map[string]FileProperty{"faces": {1 << 20, []string{"image/png"}}, "letters": {}}},
			},
		},
		"videos": {
			Type: "S3Storage", S3: &S3Storage{"kitchen", "eu-north-1", "http://127.0.0.1:9000", "v/", time.Minute, ""},
			BinaryExpose: BinaryExpose{URL: "/videos"}, MaxSize: 10 << 20, Grace: 2 * time.Hour,
			Quota: Quota{20 << 30, 80 << 30}, Thumbs: thumbs(),
		},
	})
}

func TestPropertiesOfFilesAreAListOrHaveLimits(t *testing.T) {
	names := func(all ...string) FileProperties { return FileProperties{Names: all} }
	for text, want := range map[string]map[string]FileProperties{
		"{}":             nil,
		"{A: [x, y]}":    {"A": names("x", "y")},
		"{A: 'x, y'}":    {"A": names("x", "y")},
		"{A: x, B: [y]}": {"A": names("x"), "B": names("y")},
		"{A: []}":        {"A": {}}, // no file can be attached
		"{A: {x: }}":     {"A": {[]string{"x"}, map[string]FileProperty{"x": {}}}},
		"{A: {y: {}, x: {maxSize: 10MiB}}}": {"A": {[]string{"x", "y"},
			map[string]FileProperty{"x": {MaxSize: 10 << 20}, "y": {}}}},
		"{A: {x: {types: 'image/*, text/css'}}}": {"A": {[]string{"x"},
			map[string]FileProperty{"x": {Types: []string{"image/*", "text/css"}}}}},
	} {
		b := mustParse(t, "stores: {A: {}, B: {}}\nbinaries: {b: {map: "+text+"}}").Binaries["b"]
		equal(t, text, b.Map, want)
		if any := b.Places() == nil; any != (len(want) == 0) {
			t.Errorf("%s: any property: %t", text, any)
		}
	}
}

func TestQuotasFollowTheGracePeriodAndTheSizeOfFiles(t *testing.T) {
	for text, want := range map[string]Quota{
		"{}": {10 << 30, 40 << 30}, "{grace: 1s}": {10 << 30, 40 << 30}, "{grace: 61m}": {20 << 30, 80 << 30},
		"{maxSize: 5GiB}":        {50 << 30, 200 << 30},
		"{quota: {user: 10MiB}}": {10 << 20, 40 << 30}, "{quota: {user: 20GiB}}": {20 << 30, 80 << 30},
		"{quota: {user: 0}}":                     {0, 40 << 30},
		"{quota: {user: 10MiB, address: 10MiB}}": {10 << 20, 10 << 20}, "{quota: {address: 0}}": {10 << 30, 0},
	} {
		equal(t, text, mustParse(t, "binaries: {b: "+text+"}").Binaries["b"].Quota, want)
	}
}

func TestEmptyFileMeansAllDefaults(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing yet\n", "---\n", "{}", "stores:\nbus:\n", "\ufefflog: {}\n"} {
		c := mustParse(t, text)
		data := absPath(t, "data")
		equal(t, "listen", c.Listen, "127.0.0.1:8080")
		equal(t, "baseURL", c.BaseURL, "http://localhost:8080")
		equal(t, "data", c.Data, data)
		equal(t, "maxObjectSize", c.MaxObjectSize, int64(256<<10))
		equal(t, "tombstones", c.Tombstones, 24*time.Hour)
		equal(t, "admins", c.Admins, "user.admin == true")
		equal(t, "shutdownTimeout", c.ShutdownTimeout, 30*time.Second)
		equal(t, "shutdownDelay", c.ShutdownDelay, time.Duration(0))
		equal(t, "fillRate", c.FillRate, 1000)
		equal(t, "log", c.Log, Log{slog.LevelInfo, "text"})
		equal(t, "bus", c.Bus, Bus{Listen: "127.0.0.1:4222", Events: Events{168 * time.Hour, 4 << 30, 1_000_000}})
		equal(t, "events", c.Events,
			EventStreams{Clients: 10_000, Address: 200, Heartbeat: 15 * time.Second, Buffer: 16 << 20})
		equal(t, "documents", c.Documents, Documents{OpenAPI: true, AsyncAPI: true})
		equal(t, "backends", c.Backends, map[string]Backend{
			"default": {Type: "file", File: &FileBackend{Folder: filepath.Join(data, "stores", "default")}},
		})
		equal(t, "mailers", c.Mailers,
			map[string]Mailer{"default": {Type: "file", File: &FileMailer{filepath.Join(data, "mail")}}})
		equal(t, "binaries", len(c.Binaries), 0)
		equal(t, "e-mail", c.Authentication.Email, (*Email)(nil))
	}
}

func TestEmbeddedServerWithItsOwnConfigurationFile(t *testing.T) {
	file := absPath(t, "testdata/nats.conf")
	for listen, want := range map[string]string{"": "", ", listen: 127.0.0.1:0": "127.0.0.1:0"} {
		c := mustParse(t, "bus: {config: testdata/nats.conf, user: kitchen, password: p, replicas: 1"+listen+"}\n")
		equal(t, "bus", c.Bus, Bus{
			Listen: want, Config: file, User: "kitchen", Password: "p", Replicas: 1,
			Events: Events{168 * time.Hour, 4 << 30, 1_000_000},
		})
	}
}

func TestUserIdentAndInternalStoresAlwaysExist(t *testing.T) {
	c := mustParse(t, "")
	closed := Policy{Owner: true, Create: "false"}
	common := Store{Backend: "default", MaxObjectSize: 256 << 10, Map: map[string]Mapping{},
		References: map[string]Reference{}, Copies: map[string]Copy{}, Fields: map[string]Field{},
		Intercept: Interceptors{}}

	users := common
	users.Name, users.Policy, users.Private, users.Bus = "Users", closed, []string{"password"}, true
	users.Reserved = []string{"admin", "disabled"}
	users.Fields = map[string]Field{"idents": {Read: "isOwner"}}
	idents := common
	idents.Name, idents.Policy, idents.Owner = "Idents",
		Policy{Owner: true, Create: "false", Update: "false", Delete: "false"}, "user"
	idents.Map = map[string]Mapping{
		"Users": {Key: "user", Target: "idents", Fields: []string{"type"}, Cascade: true, Limit: 10_000,
			MaxBytes: 1 << 20},
	}
	want := map[string]*Store{"Users": &users, "Idents": &idents}
	for _, name := range []string{"Sessions", "Tokens", "Contents", "Requests", "LogPositions", "SealKeys",
		"UploadQuotas"} {
		own := common
		own.Name = name
		want[name] = &own
	}
	equal(t, "stores", c.Stores, want)
}

func TestUserAndIdentStoresCanHaveOtherNames(t *testing.T) {
	c := mustParse(t, "authentication: {userStore: People, identStore: Keys}\n")
	equal(t, "names",
		names(c.Stores), []string{"Contents", "Keys", "LogPositions", "People", "Requests", "SealKeys", "Sessions",
			"Tokens", "UploadQuotas"})
	equal(t, "target of the idents", names(c.Stores["Keys"].Map), []string{"People"})
	equal(t, "private", c.Stores["People"].Private, []string{"password"})
}

func TestConfiguredMapOfIdentsReplacesTheDefault(t *testing.T) {
	equal(t, "map", len(mustParse(t, "stores: {Idents: {map: {}}}\n").Stores["Idents"].Map), 0)
}

func TestTheDefaultConfigurationLoads(t *testing.T) {
	c, err := Load("belfry.yaml", os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "data", c.Data, absPath(t, "..", "data"))
	equal(t, "stores.Books.map", c.Stores["Books"].Map, map[string]Mapping{
		"Authors": {Key: "author", Target: "books", Fields: []string{"title", "year"}, Cascade: true, Limit: 10_000,
			MaxBytes: 1 << 20},
	})
	equal(t, "stores.Books.indexes", c.Stores["Books"].Indexes, [][]string{{"title"}, {"author", "year"}})
	equal(t, "stores.Books.expose", c.Stores["Books"].Expose,
		&Expose{URL: "/books", List: true, Events: true, EventsAsList: true})
	for _, name := range []string{"Authors", "Books"} {
		equal(t, name+" is open, for the tour has no login", c.Stores[name].Policy, Policy{})
	}
}

func TestJSONIsAccepted(t *testing.T) {
	c := mustParse(t, "{\n\t\"listen\": \"127.0.0.1:${PORT}\",\n\t\"mailers\": {\"m\": {\"type\": \"smtp\", "+
		"\"host\": \"h\", \"port\": \"${PORT}\"}}\n}\n")
	equal(t, "listen", c.Listen, "127.0.0.1:8099")
	equal(t, "port", c.Mailers["m"].SMTP.Port, int64(8099))
}

func TestOverrideIsCheckedAndUpdatesDerivedDefaults(t *testing.T) {
	c := mustParse(t, "authentication: {providers: {email: {}}}\nbackends: {kept: {folder: kept}}\n")
	if err := c.Override("app.example.com:81", "elsewhere"); err != nil {
		t.Fatal(err)
	}
	equal(t, "listen", c.Listen, "app.example.com:81")
	equal(t, "baseURL", c.BaseURL, "http://app.example.com:81")
	equal(t, "sender", c.Authentication.Email.From, "Belfry <no-reply@app.example.com>")
	equal(t, "backend", c.Backends["default"].File.Folder, absPath(t, "elsewhere", "stores", "default"))
	equal(t, "configured folder", c.Backends["kept"].File.Folder, absPath(t, "kept"))
	if err := c.Override("", ""); err != nil || c.Listen != "app.example.com:81" {
		t.Errorf("an empty override changed the address to %s, error %v", c.Listen, err)
	}
	for listen, want := range map[string]string{
		"8080": "listen: expected host:port, such as 127.0.0.1:8080, or :8080 for every interface, not \"8080\": " +
			"correct --listen or BELFRY_LISTEN",
		"127.0.0.1:4222": "listen: is also the address of bus.listen; HTTP and NATS cannot share one",
	} {
		if err := c.Override(listen, "other"); err == nil || err.Error() != want {
			t.Errorf("override with %s: got %v, want %s", listen, err, want)
		}
	}
	equal(t, "data after a failed override", c.Data, absPath(t, "elsewhere"))
}

func TestBaseURLFollowsTheBoundAddressUnlessConfigured(t *testing.T) {
	equal(t, "free port", mustParse(t, "listen: 127.0.0.1:0").BaseURLAt("127.0.0.1:41234"), "http://localhost:41234")
	equal(t, "every interface", mustParse(t, "").BaseURLAt("[::]:80"), "http://localhost:80")
	equal(t, "configured", mustParse(t, "baseURL: https://a.example/").BaseURLAt("[::]:80"), "https://a.example")
}

func TestLaterProblemIsReportedAtItsKey(t *testing.T) {
	c := mustParse(t, "stores:\n  Books:\n    policy:\n      create: user !=\n    indexes:\n      - title\n")
	for key, want := range map[string]string{
		"stores.Books.policy.create": "belfry.yaml:4:7: stores.Books.policy.create: bad x; really",
		"stores.Books.policy.update": "belfry.yaml:3:5: stores.Books.policy.update: bad x; really",
		"stores.Books.indexes[0]":    "belfry.yaml:6:9: stores.Books.indexes[0]: bad x; really",
		"stores.Books.indexes[7]":    "belfry.yaml:5:5: stores.Books.indexes[7]: bad x; really",
		"mailers.default":            "belfry.yaml:1:1: mailers.default: bad x; really",
	} {
		if got := c.Problem(key, "bad %s\nreally\n", "x").Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestProblemsAreInvalidInput(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"), environment)
	if !errors.Is(err, errs.Invalid) ||
		!strings.HasSuffix(err.Error(), "none.yaml: cannot be read: no such file or directory") {
		t.Errorf("got %v of kind %v", err, errs.KindOf(err))
	}
	_, err = Parse("belfry.yaml", []byte("lsiten: :80"), environment)
	var problem Problem
	if !errors.As(err, &problem) || problem.Key != "lsiten" || problem.Line != 1 || problem.Column != 1 {
		t.Errorf("got %+v", problem)
	}
}
