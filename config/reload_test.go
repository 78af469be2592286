package config

import (
	"fmt"
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
		"listen": "restart", "log.level": "live", "bus.user": "restart", "bus.events.maxAge": "live",
		"stores.A": "live", "backends.A": "live", "backends.A.folder": "restart", "binaries.A": "live",
		"stores.A.indexes[]": "live", "stores.A.policy.default": "live",
		"stores.A.backend": "refused=data", "binaries.A.presign": "live", "binaries.A.bucket": "refused=data",
		"binaries.A.folder": "refused=data", "backup.s3.bucket": "live",
		"authentication.providers.email.notices.device.enabled": "live", "authentication.providers.slack.type": "live",
		"stores.A.map.A.key": "live", "lisen": "", "log.levels": "",
	} {
		equal(t, path, decode.PolicyOf[Config](path), want)
	}
}

// differences returns the changes between two configurations, one a line.
func differences(t *testing.T, before, now string) []string {
	t.Helper()
	all := []string{}
	for _, c := range Changes(mustParse(t, before), mustParse(t, now)) {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s: %s %s", c.Path, c.Policy, c.Command)))
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
		{"", "log: {level: debug, format: json}", []string{`log.format: live`, `log.level: live`}},
		{"", "tombstones: 2d\nmaxObjectSize: 1KiB\nfillRate: 0\nshutdownDelay: 1s", []string{
			`fillRate: live`, `maxObjectSize: live`, `shutdownDelay: live`,
			`stores.Contents.maxObjectSize: live`, `stores.Idents.maxObjectSize: live`,
			`stores.LogPositions.maxObjectSize: live`,
			`stores.Requests.maxObjectSize: live`, `stores.SealKeys.maxObjectSize: live`,
			`stores.Sessions.maxObjectSize: live`,
			`stores.Tokens.maxObjectSize: live`, `stores.UploadQuotas.maxObjectSize: live`,
			`stores.Users.maxObjectSize: live`, `tombstones: live`}},
		{"hosts: [a]\nproxies: [10.0.0.1]", "hosts: [a, b]\nproxies: [10.0.0.0/8]",
			[]string{`hosts: live`, `proxies: live`}},
		{"stores: {A: {}}", "stores: {A: {}, B: {}}", []string{`stores.B: live`}},
		{"stores: {A: {}}", "stores: {A: {expose: {}}}", []string{`stores.A.expose: live`}},
		{"stores: {A: {expose: {}}}", "stores: {A: {expose: {url: /b, list: true}}}", []string{
			`stores.A.expose.events: live`, `stores.A.expose.list: live`, `stores.A.expose.url: live`}},
		{"stores: {A: {indexes: [a]}}", "stores: {A: {indexes: ['a, b', c], unique: [d], computed: {e: f}}}", []string{
			`stores.A.computed.e: live`, `stores.A.indexes: live`, `stores.A.unique: live`}},
		{"stores: {A: {}}", "stores: {A: {policy: owner}}",
			[]string{`stores.A.indexes: live`, `stores.A.owner: live`, `stores.A.policy: live`}},
		{"stores: {A: {policy: {get: a, default: allow}}}", "stores: {A: {policy: {get: a}}}", []string{
			`stores.A.policy.create: live`, `stores.A.policy.delete: live`, `stores.A.policy.update: live`}},
		{"stores: {A: {fields: {a: {read: b}}}}", "stores: {A: {fields: {a: {read: c}}}}",
			[]string{`stores.A.fields.a.read: live`}},
		{"backends: {b: {}}\nstores: {A: {}}", "backends: {b: {}}\nstores: {A: {backend: b}}",
			[]string{`stores.A.backend: refused ` + commands["data"]}},
		{"", "backends: {b: {}}", []string{`backends.b: live`}},
		{"", "binaries: {b: {}}", []string{`binaries.b: live`}},
		{"binaries: {b: {}}", "binaries: {b: {}, c: {expose: {url: /c}}}", []string{`binaries.c: live`}},
		{"", "authentication: {userStore: People}",
			[]string{`authentication.userStore: refused ` + commands["accounts"], `stores.Idents.map.People: live`,
				`stores.Idents.map.Users: live`, `stores.People: live`, `stores.Users: live`}},
		{"backends: {b: {}}", "backends: {b: {type: mongodb}}", []string{`backends.b.type: restart`}},
		{"backends: {b: {folder: /a}}", "backends: {b: {folder: /b}}", []string{`backends.b.folder: restart`}},
		{"stores: {A: {intercept: {save: [{name: a}]}}}",
			"stores: {A: {intercept: {save: [{name: b}], get: [{name: a}]}}}", []string{
				`stores.A.intercept.get: live`, `stores.A.intercept.save[0].name: live`}},
		{"stores: {A: {owner: a}}", "stores: {A: {owner: b}}",
			[]string{`stores.A.indexes: live`, `stores.A.owner: live`}},
		{"stores: {A: {map: {B: {key: k, target: t}}}, B: {}}", "stores: {A: {map: {B: {key: l, target: t}}}, B: {}}",
			[]string{`stores.A.map.B.key: live`}},
		{"stores: {A: {map: {B: {key: k, target: t}}}, B: {}, C: {}}",
			"stores: {A: {map: {B: {key: k, target: u}, C: {key: k, target: t}}}, B: {}, C: {}}", []string{
				`stores.A.map.B.target: live`, `stores.A.map.C: live`}},
		{"stores: {A: {}, C: {}}", "stores: {A: {map: {C: {key: k, target: t}}}, C: {}}",
			[]string{`stores.A.map.C: live`}},
		{"", email + "}}}", []string{`authentication.providers.email: live`}},
		{email + "}}}", email + "subject: Hello, notices: {device: {subject: Who}, password: {enabled: false}}}}}",
			[]string{
				`authentication.providers.email.notices.device.subject: live`,
				`authentication.providers.email.notices.password: live`,
				`authentication.providers.email.subject: live`}},
		{"", "authentication: {mfa: required, passkeys: {}}",
			[]string{`authentication.mfa.policy: live`, `authentication.passkeys: live`}},
		{"authentication: {providers: {oidc: {issuer: 'https://a'}, github: {tokens: discard}}}",
			"authentication: {providers: {oidc: {issuer: 'https://b'}, github: {scope: [a]}}}", []string{
				`authentication.providers.github.scope: live`, `authentication.providers.oidc.issuer: live`}},
		{"bus: {url: 'nats://a', user: u, password: p}", "bus: {url: 'nats://a', user: u, password: q}",
			[]string{`bus.password: live`}},
		{"bus: {config: testdata/nats.conf, user: u, password: p}",
			"bus: {config: testdata/nats.conf, user: u, password: q}", []string{`bus.password: restart`}},
		{"bus: {url: 'nats://a', token: p}", "bus: {url: 'nats://a', token: q}", []string{`bus.token: live`}},
		{"bus: {url: 'nats://a', token: p}", "bus: {url: 'nats://a'}", []string{`bus.token: restart`}},
		{"", "ca: testdata/nats.conf", []string{`ca: live`}},
		{"tracing: {endpoint: 'https://t'}", "tracing: {endpoint: 'https://t'}\nca: testdata/nats.conf",
			[]string{`ca: restart`}},
		{"backup: {folder: /a}", "backup: {folder: /a, schedule: '0 3 * * *'}", []string{`backup.schedule: live`}},
		{"binaries: {b: {type: S3Storage, bucket: a}}",
			"binaries: {b: {type: S3Storage, bucket: c, presign: 1h, maxSize: 1GiB}}", []string{
				`binaries.b.bucket: refused ` + commands["data"], `binaries.b.maxSize: live`,
				`binaries.b.presign: live`}},
		{"baseURL: https://a.example\nhttp: {acme: {}}", "baseURL: https://b.example\nhttp: {acme: {}}", []string{
			`baseURL: live`, `http.acme.domains: live`}},
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
