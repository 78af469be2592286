package config

import (
	"os"
	"strings"
	"testing"

	"belfry/config/yamltext"
)

// What json_encode of PHP and json.dumps of Python write is read as they mean it.
func TestJSONOfOtherProgramsIsRead(t *testing.T) {
	const from = `Gr\u00fc\u00dfe \ud83d\udd14 <no-reply@example.org>`
	for name, text := range map[string]string{
		"PHP": `{"baseURL":"https:\/\/app.example.org","authentication":{"providers":{"email":{"from":"` + from +
			`","subject":"\u003Cb\u003E \ud83d\ude00\/\"\\"}}},"hosts":["a.example.org"],"limits":{}}`,
		"PHP, pretty": "{\n    \"baseURL\": \"https:\\/\\/app.example.org\",\n    \"authentication\": {\n     " +
			"   \"providers\": {\n            \"email\": {\n                \"from\": \"" +
			from + "\",\n                \"subject\": \"<b> \\uD83D\\uDE00\\/\\\"\\\\\"\n            }\n        }\n  " +
			"  },\n    \"hosts\": [\n        \"a.example.org\"\n    ]\n}\n",
		"Python, with tabs": "{\n\t\"baseURL\": \"https://app.example.org\",\n\t\"authentication\": " +
			"{\"providers\": {\"email\": {\"from\": \"" + from +
			"\", \"subject\": \"<b> \\ud83d\\ude00/\\\"\\\\\"}}},\n\t\"hosts\": [\"a.example.org\"]\n}",
		"Python, not escaped": `{"baseURL": "https://app.example.org", "authentication": {"providers": {"email": {"from": "Grüße 🔔 <no-reply@example.org>", "subject": "<b> 😀/\"\\"}}}, "hosts": ["a.example.org"]}`,
		"with a mark": "\ufeff" +
			`{"baseURL": "https:\/\/app.example.org", "authentication": {"providers": {"email": {"from": "` + from +
			`", "subject": "<b> 😀\/\"\\"}}}, "hosts": ["a.example.org"]}`,
		"indented by a tab": "\n\t{\"baseURL\": \"https://app.example.org\",\t\"authentication\": {\"providers\": " +
			"{\"email\": {\"from\": \"" + from +
			"\", \"subject\": \"<b> 😀/\\\"\\\\\"}}},\n\t\t\"hosts\": [\"a.example.org\"]}\n\t",
		"keys": `{"base\u0055RL": "https:\/\/app.example.org", "authentication": {"providers": {"email": {"from": "` +
			from + `", "subject": "<b> 😀\/\"\\"}}}, "hosts": ["a.example.org"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			c := mustParse(t, text)
			equal(t, "baseURL", c.BaseURL, "https://app.example.org")
			equal(t, "from", c.Authentication.Email.From, "Grüße 🔔 <no-reply@example.org>")
			equal(t, "subject", c.Authentication.Email.Subject, `<b> 😀/"\`)
			equal(t, "hosts", c.Hosts, []string{"a.example.org"})
		})
	}
	c := mustParse(t,
		"{\"authentication\": {\"providers\": {\"email\": {\"text\": \"one\u2028two\u2029three\u0085 {{.Token}}\"}}}}")
	equal(t, "separators in a text", c.Authentication.Email.Text, "one\u2028two\u2029three\u0085 {{.Token}}")
}

func TestProblemsOfJSONHaveTheirPlaces(t *testing.T) {
	_, err := Parse("belfry.yaml",
		[]byte(`{"baseURL":"https:\/\/a.example\/\ud83d\ude00?x","listn":"x",`+"\n"+`"a\/b\ud83d\ude00": 1, "port":2}`),
		environment)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"belfry.yaml:1:2: baseURL: expected a URL without a query",
		"belfry.yaml:1:50: listn: unknown key", "belfry.yaml:2:24: port: unknown key"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
	checkInvalid(t, []invalidCase{
		{"half a character", "{\"data\": \"\\ud83d\"}", []string{
			`1: is not valid YAML: found invalid Unicode character escape code (\uD800 to \uDFFF are halves of a character: write the character itself, or \U and eight digits)`}},
		{"an escape that YAML does not know", "data: \"a\\qb\"\n", []string{
			`1: is not valid YAML: found unknown escape character (in double quotes \ begins an escape: write \\ for a backslash, and / without one, or use single quotes)`}},
	})
}

func TestDirectivesOfYAMLVersions(t *testing.T) {
	for _, text := range []string{
		"%YAML 1.1\n---\ndata: x\n", "%YAML 1.2\n---\ndata: x\n", "%YAML 1.2\r\n---\r\ndata: x\r\n",
		"# a comment\n\n%YAML  1.2 # of 2009\n--- # x\ndata: x\n...\n",
		"\ufeff%YAML 1.2\n---\ndata: x\n", "%TAG ! tag:example.org,2026:\n%YAML 1.2\n---\ndata: x\n",
	} {
		c := mustParse(t, text)
		if !strings.HasSuffix(c.Data, "/x") {
			t.Errorf("%q: data is %s", text, c.Data)
		}
	}
	// It is a directive before the document alone.
	c := mustParse(t,
		"authentication:\n  providers:\n    email:\n      text: |\n        {{.Token}}\n\n        %YAML 1.2\n")
	equal(t, "text", c.Authentication.Email.Text, "{{.Token}}\n\n%YAML 1.2\n")
	checkInvalid(t,
		[]invalidCase{{"another language", "%YAML 2.0\n---\ndata: x\n",
			[]string{"1: is not valid YAML: found incompatible YAML document"}}})
}

func TestReferencesWithoutQuotesInFlows(t *testing.T) {
	const needs = `is not valid YAML: a value with ${...} needs quotes between { } and [ ], as in {password: "${NAME}"}`
	checkInvalid(t, []invalidCase{
		{"a password", "data: x\nmailers: {m: {type: smtp, host: h, user: u, password: ${BUS_PASSWORD}}}\n",
			[]string{"2: " + needs}},
		{"over lines", "data: '${EMPTY:-x}'\nmailers: {\n  m: {type: smtp, host: h, user: u,\n    password: " +
			"${BUS_PASSWORD:-hunter2} }}\n", []string{"4: " + needs}},
		{"a part of it", "mailers: {m: {type: smtp, host: mail.${PORT}.example.org}}\n", []string{"1: " + needs}},
		{"a list", "hosts: [a, ${EMPTY:-b}]\n", []string{"1: " + needs}},
		{"a file", "bus: {password: ${file:/run/secrets/bus}}\n", []string{"1: " + needs}},
		{"a literal one", "hosts: [$${PORT}]\n", []string{"1: " + needs}},
		{"the second", "listen: ${PORT}\ndata: ${EMPTY:-x}\nhosts: [\"${EMPTY:-a}\",\n  ${EMPTY:-b}]\n",
			[]string{"4: " + needs}},
	})
	// Another mistake beside it is reported as what it is.
	_, err := Parse("belfry.yaml", []byte("data: ${EMPTY:-x}\nhosts: [a\nlisten: x\n"), environment)
	if err == nil || strings.Contains(err.Error(), "needs quotes between") {
		t.Error(err)
	}
	c := mustParse(t, "hosts: [\"${EMPTY:-a}\", '${EMPTY:-b}']\nlisten: 127.0.0.1:${PORT}\n")
	equal(t, "hosts", c.Hosts, []string{"a", "b"})
}

func TestValuesFromFiles(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		t.Helper()
		path := folder + "/" + name
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for content, want := range map[string]string{
		"hunter2": "hunter2", "hunter2\n": "hunter2", "hunter2\r\n": "hunter2", "": "", "\n": "",
		"\ufeffhunter2\n": "hunter2",
		"a${PORT}$${b":    "a${PORT}$${b", "häßlich": "häßlich", "one\ntwo\n": "one\ntwo",
		" between spaces ": " between spaces ", //nolint:gocritic // the text of a file, whose spaces count
	} {
		c := mustParse(t,
			"mailers: {m: {type: smtp, host: h, user: u, password: \"<${file:"+file("secret", content)+"}>\"}}\n")
		equal(t, "password", string(c.Mailers["m"].SMTP.Password), "<"+want+">")
		c = mustParse(t, "mailers:\n  m:\n    type: smtp\n    host: h\n    port: ${file:"+file("port", "2525\n")+
			"}\n    user: ${EMPTY:-u}\n    password: ${file:"+folder+"/secret}x${EMPTY:-y}\n")
		equal(t, "password", string(c.Mailers["m"].SMTP.Password), want+"xy")
		equal(t, "port", c.Mailers["m"].SMTP.Port, int64(2525))
		if shown := c.Shown(); want != "" && strings.Contains(shown, strings.TrimSpace(want)) ||
			strings.Contains(shown, "2525") || !strings.Contains(shown, `password: "[secret]"`) {
			t.Errorf("shown:\n%s", shown)
		}
		found := 0
		for _, p := range c.Paths() {
			if p.Name == folder+"/secret" && p.Key == "mailers.m.password" && p.Use == ReadFile {
				found++
			}
		}
		equal(t, "paths", found, 1)
	}
	const breaks = "ends with a line break; remove it where the value comes from (${file:/path} leaves out one at " +
		"the end of the file)"
	checkInvalid(t, []invalidCase{
		{"two line breaks", "bus: {url: 'nats://a', user: u, password: '${file:" + file("two", "hunter2\n\n") + "}'}\n",
			[]string{"1:33: bus.password: " + breaks}},
		{"a carriage return", "bus: {url: 'nats://a', user: u, password: '${file:" + file("cr", "hunter2\r") + "}'}\n",
			[]string{"1:33: bus.password: " + breaks}},
		{"no file", "data: x\nbus: {url: 'nats://a', token: '${file:" + folder + "/none}'}\n",
			[]string{`2:24: bus.token: the file "` + folder + `/none" can't be read: no such file or directory`}},
		{"a folder", "listen: ${file:" + folder + "}\n",
			[]string{`1:1: listen: the file "` + folder +
				`" can't be read: it is not a regular file: invalid argument`}},
		{"too large",
			"data: ${file:" + file("large", strings.Repeat("x", yamltext.MaxFile+1)) +
				"}\n", []string{`1:1: data: the file "` + folder +
				`/large" can't be read: it is too large: expected at most 1024 KiB`}},
		{"bytes", "data: ${file:" + file("bytes", "caf\xe9") + "}\n",
			[]string{`1:1: data: the file "` + folder + `/bytes" is not valid UTF-8`}},
		{"the secret itself", "bus: {url: 'nats://a', token: '${file:hunter2}'}\n",
			[]string{"1:24: bus.token: expected the absolute path of a file, such as ${file:/run/secrets/smtp}"}},
		{"a default", "bus: {url: 'nats://a', token: '${file:/a:-hunter2}'}\n",
			[]string{"1:24: bus.token: ${file:/path} has no default: remove what begins with :-"}},
	})
}

// Nobody sees the line break at the end of a secret.
func TestLineBreaksAtTheEndOfSecrets(t *testing.T) {
	const pem = "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n"
	env := func(name string) (string, bool) {
		value, set := map[string]string{"LINE": "hunter2\n", "CRLF": "hunter2\r\n", "CR": "hunter2\r", "PEM": pem,
			"TEXT": "Hello\n{{.Token}}\n"}[name]
		return value, set
	}
	const key = `"0123456789abcdef0123456789abcdef0123456789a=\n"`
	for text, at := range map[string]string{
		"bus: {url: 'nats://a', user: u, password: " +
			"\"hunter2\\n\"}": "bus.password",
		"bus: {url: 'nats://a', user: u, password: " +
			"'${LINE}'}": "bus.password",
		"bus: {url: 'nats://a', user: '${LINE}', password: x}": "bus.user",
		"bus: {url: 'nats://a', token: '${CRLF}'}":             "bus.token",
		"bus:\n  url: nats://a\n  token: |\n    hunter2\n":     "bus.token",
		"metrics: {token: " +
			"'hunter2${CR}hunter2${CR}'}": "metrics.token",
		"mailers: {m: {type: smtp, host: h, user: u, password: " +
			"'${LINE}'}}": "mailers.m.password",
		"mailers: {m: {type: smtp, host: " +
			"'${LINE}'}}": "mailers.m.host",
		"backends: {default: {type: mongodb, url: " +
			"\"mongodb://u:hunter2@h/\\n\"}}": "backends.default.url",
		"authentication: {providers: {github: {clientID: '${LINE}', " +
			"clientSecret: x}}}": "authentication.providers.github.clientID",
		"authentication: {providers: {github: {clientID: x, clientSecret: " +
			"'${LINE}'}}}": "authentication.providers.github.clientSecret",
		"authentication: {providers: {twitter: {consumerKey: x, consumerSecret: " +
			"'${LINE}'}}}": "authentication.providers.twitter.consumerSecret",
		"authentication: {providers: {oidc: {issuer: 'https://a', clientID: x, clientSecret: " +
			"'${LINE}'}}}": "authentication.providers.oidc.clientSecret",
		"authentication: {providers: {apple: {clientID: x, teamID: y, keyID: z, privateKey: " +
			"'${LINE}'}}}": "authentication.providers.apple.privateKey",
		"authentication: {encryptionKey: " + key + "}":               "authentication.encryptionKey",
		"authentication: {encryptionKey: [" + key + "]}":             "authentication.encryptionKey[0]",
		"binaries: {b: {type: S3Storage, bucket: '${LINE}'}}":        "binaries.b.bucket",
		"authentication: {providers: {email: {subject: '${LINE}'}}}": "authentication.providers.email.subject",
	} {
		_, err := Parse("belfry.yaml", []byte(text), env)
		if err == nil || !strings.Contains(err.Error(), ": "+at+": ends with a line break; remove it") ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s:\n%v", text, err)
		}
	}
	// PEM ends with one, and texts of several lines may.
	for _, text := range []string{
		"authentication: {providers: {apple: {clientID: x, teamID: y, keyID: z, privateKey: '${PEM}'}}}",
		"authentication:\n  providers:\n    apple:\n      clientID: x\n      teamID: y\n      keyID: z\n      " +
			"privateKey: |\n        -----BEGIN PRIVATE KEY-----\n        x\n        -----END PRIVATE KEY-----\n",
		"authentication: {providers: {email: {text: '${TEXT}'}}}",
		"authentication: {providers: {email: {text: \"{{.Token}}\\n\"}}}",
	} {
		if _, err := Parse("belfry.yaml", []byte(text), env); err != nil {
			t.Errorf("%s:\n%v", text, err)
		}
	}
}

// A reload reads files again.
func TestAChangedFileIsAChangedKey(t *testing.T) {
	path := t.TempDir() + "/secret"
	read := func(content, listen string) *Config {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return mustParse(t, "listen: "+listen+"\nmailers: {m: {type: smtp, host: h, user: u, password: '${file:"+path+
			"}'}}\nhosts: [a, '${file:"+path+"}', 'b${file:"+path+"}']\n")
	}
	first := read("one\n", ":80")
	equal(t, "the same", len(Changed(first, read("one", ":80"))), 0)
	equal(t, "another content", Changed(first, read("two\n", ":80")), []string{"hosts", "mailers.m.password"})
	equal(t, "another key, too", Changed(first, read("two\n", ":81")),
		[]string{"hosts", "listen", "mailers.m.password"})
}
