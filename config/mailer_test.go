package config

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

// Mail servers know belfry by the name of its URL.
func TestTheLocalNameOfMailers(t *testing.T) {
	const smtp = "mailers: {default: {type: smtp, host: h, "
	for text, want := range map[string]string{
		"":                                     "", // the name of the machine
		"baseURL: http://localhost:8080":       "",
		"baseURL: http://127.0.0.1":            "",
		"baseURL: https://app.example.com/x":   "app.example.com",
		"baseURL: https://app.example.com:444": "app.example.com",
		"baseURL: http://192.0.2.1:8080":       "[192.0.2.1]",
		"baseURL: 'http://[2001:db8::1]:8080'": "[IPv6:2001:db8::1]",
		"listen: 192.0.2.1:8080":               "[192.0.2.1]",
	} {
		equal(t, text, mustParse(t, text+"\n"+smtp+"}}").Mailers["default"].SMTP.LocalName, want)
		equal(t, text, mustParse(t, text+"\n"+smtp+"localName: mail.example.com}}").Mailers["default"].SMTP.LocalName,
			"mail.example.com")
	}
	for text, want := range map[string]string{"192.0.2.1": "[192.0.2.1]", "'[192.0.2.1]'": "[192.0.2.1]",
		"'2001:db8::1'": "[IPv6:2001:db8::1]", "'[IPv6:2001:db8::1]'": "[IPv6:2001:db8::1]", "front-1": "front-1"} {
		equal(t, text, mustParse(t, smtp+"localName: "+text+"}}").Mailers["default"].SMTP.LocalName, want)
	}
	checkInvalid(t, []invalidCase{
		{"a URL", smtp +
			"localName: 'http://a'}}",
			[]string{`1:42: mailers.default.localName: expected a name such as app.example.com, or an address, not "http://a"`}},
		{"two lines",
			smtp + "localName: \"a\\nb\"}}",
			[]string{`1:42: mailers.default.localName: expected a name such as app.example.com, or an address, not "a\nb"`}},
	})
}

func TestTheHeaderOfProxies(t *testing.T) {
	equal(t, "by default", mustParse(t, "").ProxyHeader, "X-Forwarded-For")
	equal(t, "another", mustParse(t, "proxies: [10.0.0.1]\nproxyHeader: Forwarded\n").ProxyHeader, "Forwarded")
	equal(t, "IPv4 as IPv6", mustParse(t, "proxies: ['::ffff:10.1.2.3/104', '::ffff:10.0.0.1']\n").Proxies,
		[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("10.0.0.1/32")})
	checkInvalid(t, []invalidCase{
		{"another header", "proxies: [10.0.0.1]\nproxyHeader: X-Real-IP\n",
			[]string{`2:1: proxyHeader: expected X-Forwarded-For or Forwarded, not "X-Real-IP"`}},
		{"without proxies",
			"proxyHeader: Forwarded\n",
			[]string{"1:1: proxyHeader: has an effect with proxies alone: name the addresses of the proxies in " +
				"proxies, or remove this key"}},
	})
}

// Whatever has no authorities of its own gets those of ca.
func TestTheAuthoritiesOfCA(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "ca.pem")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const all = "backends: {default: {type: mongodb}, d: {type: dynamodb}}\nbinaries: {b: {type: S3Storage, bucket: " +
		"x}}\nbackup: {s3: {bucket: y}}\n" +
		"tracing: {endpoint: 'https://t'}\nbaseURL: https://app.example.com\n"
	load := func(text string) *Config {
		t.Helper()
		c, err := Parse(filepath.Join(folder, "belfry.yaml"), []byte(text), environment)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := load("ca: ca.pem\n" + all + "bus: {url: 'tls://b'}\nhttp: {acme: {}}\n")
	for key, got := range map[string]string{
		"ca": c.CA, "MongoDB": c.Backends["default"].MongoDB.CA, "DynamoDB": c.Backends["d"].DynamoDB.CA,
		"S3": c.Binaries["b"].S3.CA, "backups": c.Backup.S3.CA,
		"tracing": c.Tracing.CA, "bus": c.Bus.ExtraCA, "ACME": c.HTTP.ACME.ExtraCA,
	} {
		equal(t, key, got, file)
	}
	c = load("ca: ca.pem\n" + all + "bus: {url: 'tls://b', tls: {ca: ca.pem}}\nhttp: {acme: {ca: ca.pem}}\n")
	equal(t, "bus", c.Bus.ExtraCA, "")
	equal(t, "ACME", c.HTTP.ACME.ExtraCA, "")
	equal(t, "none", load(all).Backends["default"].MongoDB.CA, "")
}
