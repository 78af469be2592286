package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"belfry/config/decode"
)

func TestEveryKeyHasAReloadPolicy(t *testing.T) {
	for _, k := range goldenKeys(t) {
		path := strings.ReplaceAll(strings.Join(k.path, "."), ".[]", "[]")
		reload := decode.PolicyOf[Config](path)
		usual, condition, conditional := strings.Cut(reload, " unless ")
		command, refused := strings.CutPrefix(reload, "refused=")
		switch {
		case refused && commands[command] != "":
		case conditional && usual == "live" && conditions[condition] != nil:
		case reload == "live", reload == "restart":
		default:
			t.Errorf("%s has the policy %q", path, reload)
		}
	}
	for path, want := range map[string]string{
		"listen": "restart", "log.level": "live", "bus.user": "restart", "bus.events.maxAge": "live", "stores.A": "live", "backends.A": "live", "backends.A.folder": "restart", "binaries.A": "live unless first", "stores.A.indexes[]": "restart", "stores.A.policy.default": "live",
		"stores.A.backend": "refused=data", "binaries.A.presign": "live", "binaries.A.bucket": "refused=data", "binaries.A.folder": "refused=data", "backup.s3.bucket": "live",
		"authentication.providers.email.notices.device.enabled": "live", "authentication.providers.slack.type": "live", "stores.A.map.A.key": "live unless mapped", "lisen": "", "log.levels": "",
	} {
		equal(t, path, decode.PolicyOf[Config](path), want)
	}
}

// differences returns the changes between two configurations, one a line.
func differences(t *testing.T, before, now string) []string {
	t.Helper()
	all := []string{}
	for _, c := range Changes(mustParse(t, before), mustParse(t, now)) {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s: %q %q %s %s", c.Path, c.Old, c.New, c.Policy, c.Command)))
	}
	return all
}

func TestChanges(t *testing.T) {
	const email = "authentication: {providers: {email: {"
	for _, c := range []struct {
		before, now string
		want        []string
	}{
		{"", "listen: 127.0.0.1:8080", nil},
		{"", "log: {level: debug, format: json}", []string{`log.format: "text" "json" live`, `log.level: "info" "debug" live`}},
		{"", "tombstones: 2d\nmaxObjectSize: 1KiB\nfillRate: 0\nshutdownDelay: 1s", []string{
			`fillRate: "1000" "0" live`, `maxObjectSize: "256KiB" "1KiB" live`, `shutdownDelay: "0s" "1s" live`,
			`stores.Contents.maxObjectSize: "256KiB" "1KiB" live`, `stores.Idents.maxObjectSize: "256KiB" "1KiB" live`, `stores.LogPositions.maxObjectSize: "256KiB" "1KiB" live`,
			`stores.Requests.maxObjectSize: "256KiB" "1KiB" live`, `stores.SealKeys.maxObjectSize: "256KiB" "1KiB" live`, `stores.Sessions.maxObjectSize: "256KiB" "1KiB" live`,
			`stores.Tokens.maxObjectSize: "256KiB" "1KiB" live`, `stores.UploadQuotas.maxObjectSize: "256KiB" "1KiB" live`, `stores.Users.maxObjectSize: "256KiB" "1KiB" live`,
			`tombstones: "1d" "2d" live`}},
		{"hosts: [a]\nproxies: [10.0.0.1]", "hosts: [a, b]\nproxies: [10.0.0.0/8]", []string{`hosts: "a" "a, b" live`, `proxies: "10.0.0.1/32" "10.0.0.0/8" live`}},
		{"stores: {A: {}}", "stores: {A: {}, B: {}}", []string{`stores.B: "" "" live`}},
		{"stores: {A: {}}", "stores: {A: {expose: {}}}", []string{`stores.A.expose: "" "" live`}},
		{"stores: {A: {expose: {}}}", "stores: {A: {expose: {url: /b, list: true}}}", []string{
			`stores.A.expose.events: "false" "true" live`, `stores.A.expose.list: "false" "true" live`, `stores.A.expose.url: "/a" "/b" live`}},
		{"stores: {A: {indexes: [a]}}", "stores: {A: {indexes: ['a, b', c], unique: [d], computed: {e: f}}}", []string{
			`stores.A.computed.e: "" "f" live`, `stores.A.indexes: "a" "a, b; c" restart`, `stores.A.unique: "" "d" restart`}},
		{"stores: {A: {}}", "stores: {A: {policy: owner}}", []string{`stores.A.owner: "" "user" live`, `stores.A.policy: "" "owner" live`}},
		{"stores: {A: {policy: {get: a, default: allow}}}", "stores: {A: {policy: {get: a}}}", []string{
			`stores.A.policy.create: "" "` + LeftOut + `" live`, `stores.A.policy.delete: "" "` + LeftOut + `" live`, `stores.A.policy.update: "" "` + LeftOut + `" live`}},
		{"stores: {A: {fields: {a: {read: b}}}}", "stores: {A: {fields: {a: {read: c}}}}", []string{`stores.A.fields.a.read: "b" "c" live`}},
		{"backends: {b: {}}\nstores: {A: {}}", "backends: {b: {}}\nstores: {A: {backend: b}}", []string{`stores.A.backend: "default" "b" refused ` + commands["data"]}},
		{"", "backends: {b: {}}", []string{`backends.b: "" "" live`}},
		{"", "binaries: {b: {}}", []string{`binaries.b: "" "" restart`}},
		{"binaries: {b: {}}", "binaries: {b: {}, c: {expose: {url: /c}}}", []string{`binaries.c: "" "" live`}},
		{"", "authentication: {userStore: People}", []string{`authentication.userStore: "Users" "People" refused ` + commands["accounts"], `stores.Idents.map.People: "" "" live`, `stores.Idents.map.Users: "" "" live`, `stores.People: "" "" live`, `stores.Users: "" "" live`}},
		{"backends: {b: {}}", "backends: {b: {type: mongodb}}", []string{`backends.b.type: "file" "mongodb" restart`}},
		{"backends: {b: {folder: /a}}", "backends: {b: {folder: /b}}", []string{`backends.b.folder: "/a" "/b" restart`}},
		{"stores: {A: {intercept: {save: [{name: a}]}}}", "stores: {A: {intercept: {save: [{name: b}], get: [{name: a}]}}}", []string{
			`stores.A.intercept.get: "" "" live`, `stores.A.intercept.save[0].name: "a" "b" live`}},
		{"stores: {A: {owner: a}}", "stores: {A: {owner: b}}", []string{`stores.A.owner: "a" "b" live`}},
		{"stores: {A: {map: {B: {key: k, target: t}}}, B: {}}", "stores: {A: {map: {B: {key: l, target: t}}}, B: {}}", []string{`stores.A.map.B.key: "k" "l" restart`}},
		{"stores: {A: {map: {B: {key: k, target: t}}}, B: {}, C: {}}", "stores: {A: {map: {B: {key: k, target: u}, C: {key: k, target: t}}}, B: {}, C: {}}", []string{
			`stores.A.map.B.target: "t" "u" live`, `stores.A.map.C: "" "" live`}},
		{"stores: {A: {}, C: {}}", "stores: {A: {map: {C: {key: k, target: t}}}, C: {}}", []string{`stores.A.map.C: "" "" restart`}},
		{"", email + "}}}", []string{`authentication.providers.email: "" "" live`}},
		{email + "}}}", email + "subject: Hello, notices: {device: {subject: Who}, password: {enabled: false}}}}}", []string{
			`authentication.providers.email.notices.device.subject: "A login from a new device" "Who" live`, `authentication.providers.email.notices.password: "" "" live`,
			`authentication.providers.email.subject: "Confirm your address" "Hello" live`}},
		{"", "authentication: {mfa: required, passkeys: {}}", []string{`authentication.mfa.policy: "optional" "required" live`, `authentication.passkeys: "" "" live`}},
		{"authentication: {providers: {oidc: {issuer: 'https://a'}, github: {tokens: discard}}}", "authentication: {providers: {oidc: {issuer: 'https://b'}, github: {scope: [a]}}}", []string{
			`authentication.providers.github.scope: "" "a" live`, `authentication.providers.oidc.issuer: "https://a" "https://b" live`}},
		{"bus: {url: 'nats://a', user: u, password: p}", "bus: {url: 'nats://a', user: u, password: q}", []string{`bus.password: "[secret]" "[secret]" live`}},
		{"bus: {config: testdata/nats.conf, user: u, password: p}", "bus: {config: testdata/nats.conf, user: u, password: q}", []string{`bus.password: "[secret]" "[secret]" restart`}},
		{"bus: {url: 'nats://a', token: p}", "bus: {url: 'nats://a', token: q}", []string{`bus.token: "[secret]" "[secret]" live`}},
		{"bus: {url: 'nats://a', token: p}", "bus: {url: 'nats://a'}", []string{`bus.token: "[secret]" "" restart`}},
		{"", "ca: testdata/nats.conf", []string{`ca: "" "` + absPath(t, "testdata/nats.conf") + `" live`}},
		{"tracing: {endpoint: 'https://t'}", "tracing: {endpoint: 'https://t'}\nca: testdata/nats.conf", []string{`ca: "" "` + absPath(t, "testdata/nats.conf") + `" restart`}},
		{"backup: {folder: /a}", "backup: {folder: /a, schedule: '0 3 * * *'}", []string{`backup.schedule: "" "0 3 * * *" live`}},
		{"binaries: {b: {type: S3Storage, bucket: a}}", "binaries: {b: {type: S3Storage, bucket: c, presign: 1h, maxSize: 1GiB}}", []string{
			`binaries.b.bucket: "a" "c" refused ` + commands["data"], `binaries.b.maxSize: "10MiB" "1GiB" live`, `binaries.b.presign: "0s" "1h" live`}},
		{"baseURL: https://a.example\nhttp: {acme: {}}", "baseURL: https://b.example\nhttp: {acme: {}}", []string{
			`baseURL: "https://a.example" "https://b.example" live`, `http.acme.domains: "a.example" "b.example" live`}},
	} {
		got := differences(t, c.before, c.now)
		if !slices.Equal(got, c.want) {
			t.Errorf("from %s\nto %s:\n got %q\nwant %q", c.before, c.now, got, c.want)
		}
		if got := differences(t, c.now, c.before); len(got) != len(c.want) && !strings.Contains(c.before, "token") {
			t.Errorf("from %s\nto %s: %q", c.now, c.before, got)
		}
		equal(t, c.now, differences(t, c.now, c.now), []string{})
	}
}

// Values of the environment are hidden whatever their key, and so are defaults that follow them.
func TestChangesShowNoSecrets(t *testing.T) {
	data, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	load := func(text, secret string) *Config {
		t.Helper()
		c, err := Parse("testdata/full.yaml", []byte(text), func(name string) (string, bool) {
			value, set := map[string]string{"BUS_PASSWORD": secret}[name]
			return value, set
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	text := strings.NewReplacer("user: kitchen", "user: '${BUS_PASSWORD}'", "consumerSecret: s,", "consumerSecret: swordfish-literal,", "hosts: [", "hosts: ['${BUS_PASSWORD}', ",
		"name: spelling", "name: '${BUS_PASSWORD}'", "/people", "'/${BUS_PASSWORD}'", "indexes: [name", "indexes: ['${BUS_PASSWORD}'", "subject: Psst", "subject: '${BUS_PASSWORD}'",
		"listen: 0.0.0.0:9000", "listen: '${BUS_PASSWORD}:9000'", "baseURL: https://kitchen.example.org/api/", "# by default").Replace(string(data))
	pairs := [][2]*Config{
		{load(text, "swordfish1"), load(text, "swordfish2")},
		{load(text, "swordfish1"), load(strings.ReplaceAll(text, "${BUS_PASSWORD}", "swordfish"), "")},
		{load(text, "swordfish1"), mustParse(t, "")},
	}
	for _, pair := range pairs {
		for _, both := range [][2]*Config{pair, {pair[1], pair[0]}} {
			found := Changes(both[0], both[1])
			if len(found) < 15 {
				t.Errorf("only %d changes: %v", len(found), found)
			}
			for _, c := range found {
				if strings.Contains(c.Path+c.Old+c.New, "swordfish") {
					t.Errorf("a change shows a secret: %+v", c)
				}
			}
		}
	}
}
