package value

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFormats(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for is, texts := range map[string]map[string]string{ // a text, and its value or "!" and the error
		"flag":          {"true": "true", "false": "false", "yes": "!expected true or false"},
		"one a b c":     {"b": "b", "d": "!expected a, b or c"},
		"one a":         {"a": "a", "": "!expected a"},
		"either off on": {"off": "false", "on": "true", "true": "!expected off or on"},
		"owner": {"owner": "true",
			"all": "!expected owner, or one expression each for create, get, update, delete, list"},
		"level": {"warn": "WARN", "loud": "!expected debug, info, warn or error"},
		"number -1 5": {"-1": "-1", "5": "5", "6": "!expected a whole number from -1 to 5",
			"1.5": "!expected a whole number from -1 to 5"},
		"count": {"0": "0", "10000": "10000", "-1": "!expected a number from 0 to 10000"},
		"size 1MiB": {"1": "1", "1 kb": "1000", "1MiB": "1048576",
			"2MiB": "!expected a size from 1 byte to 1MiB", "0": "!expected a size from 1 byte to 1MiB"},
		"sizeOrNone 1KiB 1MiB": {"0": "0", "2KB": "2000", "1": "!expected a size from 1KiB, or 0 for no limit",
			"x": "!expected a size such as 256KiB, 10MiB, 10MB or a number of bytes, or 0 for no limit"},
		"duration 1s 1h": {"1s": "1s", "1h": "1h0m0s", "2h": "!expected a duration from 1s to 1h",
			"1": "!expected a duration with its unit, such as 250ms, 30s, 12h or 7d"},
		"duration 1s": {"36500d": "876000h0m0s", "0s": "!expected a duration of at least 1s"},
		"duration 0s": {"0": "0s", "-1s": "!expected a duration from 0s"},
		"presign":     {"0s": "0s", "7d": "168h0m0s", "1ms": "!expected a duration of 0s (none), or from 1s to 7d"},
		"schedule": {"1h": "1h0m0s", "0 3 * * *": "0 3 * * *",
			"@never": "!expected one of @hourly, @daily, @weekly, @monthly, @yearly"},
		"ratio": {"0.5": "0.5", "NaN": "!expected a number from 0 to 1"},
		"file": {"file": folder + "/file", "none": "!expected a readable file (no such file or directory)",
			".": "!expected a regular file", "": "!expected the path of a file"},
		"folder": {"none": folder + "/none", "/a/../b": "/b", "": "!expected a path"},
		"site":   {".": folder, "file": "!expected a folder that exists and can be read (not a directory)"},
		"url nats": {"nats://a": "nats://a", "nats://u@a": "!expected a URL without user and password",
			"http://a": "!expected a URL such as nats://example.com"},
		"baseURL": {"http://a/b/": "http://a/b", "http://a?b": "!expected a URL without a query"},
		"publicURL": {"HTTPS://A.example:443/": "https://a.example",
			"http://bücher.example": "http://xn--bcher-kva.example"},
		"network": {"10.1.2.3/8": "10.0.0.0/8", "::ffff:10.0.0.1": "10.0.0.1/32",
			"x": "!expected an address such as 10.0.0.1 or a network such as 10.0.0.0/8"},
		"localName": {"2001:db8::1": "[IPv6:2001:db8::1]",
			"a b": "!expected a name such as app.example.com, or an address"},
		"indexField": {"-a.b": "-a.b", "a[]": "a[]",
			"-a[]": "!expected the elements of an array without a direction: they have no order"},
		"key32": {strings.Repeat("A", 43): strings.Repeat("\x00", 32),
			"x": "!expected 32 random bytes in base64, as from: openssl rand -base64 32"},
		"metricsToken": {"": "", "short": "!expected at least 16 characters, or nothing for no token"},
		"sender": {"A <a@b.example>": "A <a@b.example>",
			"a": "!expected an address such as Belfry <no-reply@example.com>"},
		"tenant": {"common": "common", "a.example": "!expected common, organizations, consumers, or the id of " +
			"a tenant, such as 9188040d-6c67-4c5b-b112-36a304b66dad (a domain can become another tenant's)"},
		"traceEndpoint": {"http://a": "http://a/v1/traces",
			"": "", "a": "!expected a URL of a receiver of OTLP over HTTP without user and query, such as " +
				"http://localhost:4318, or nothing"},
		"redirect": {"/a": "/a", "https://bücher.example/a": "https://xn--bcher-kva.example/a",
			"//a": "!expected a URL such as https://example.com/welcome, or a path such as /welcome"},
		"route": {"/a/b": "/a/b", "a": "!expected a path that begins with /, such as /books",
			"/.": "!expected a path of letters, digits and . _ ~ -, such as /books"},
		"subfolder": {"./a/": "a", "..": "!expected the path of a folder in static.folder, such as assets"},
		"cookie": {"shop": "shop",
			"a-device": "!ends with -device, as another cookie of belfry does: choose another name, such as shop"},
		"servedHost": {"A.example": "a.example", "[::1]": "::1",
			"a:80": "!expected a name such as app.example.com, or an address, without scheme and port"},
		"domain":     {"A.example": "a.example", "localhost": "!expected a name such as app.example.com"},
		"text":       {"": "", "a\nb": "a\nb"},
		"line":       {"a\nb": "!expected a single line"},
		"nonempty":   {" ": "!expected a non-empty string"},
		"expression": {"a == b": "a == b", "": "!expected a non-empty string"},
		"addressOrNone": {"": "", ":80": ":80",
			"80": "!expected host:port, such as 127.0.0.1:8080, or :8080 for every interface"},
		"mongoURL": {"mongodb://a,b/c": "mongodb://a,b/c", "http://a": "!expected a URL such as " +
			"mongodb://127.0.0.1:27017, with special characters of the password percent-encoded"},
		"passkeyOrigin": {"http://A.example:80": "http://a.example", "android:x": "!expected android:apk-key-hash: " +
			"and the SHA-256 of the signing key in base64url without padding, 43 characters"},
		"appRedirect": {"com.example.app:/in": "com.example.app:/in", "https://a": "!expected a scheme in lower case " +
			"and a path, such as https://app.example.com/signed-in or com.example.app:/signed-in"},
		"ownProperty": {"a": "a",
			"uuid": "!expected a property of your own; uuid, created and updated are set by the server"},
		"textField": {"a.b": "a.b", "a.": "!expected a property, or one of the object in it such as address.city"},
		"color":     {"#7A1f5c": "#7a1f5c", "#fff": "#ffffff", "red": "!expected a color such as #1a5cb8, in quotes"},
		"thumbnail": {"90x60": "90x60", "x600": "x600",
			"90": "!expected a size in pixels: 90x60 cuts to it, 800x has this width, x600 this height"},
		"mediaRange": {"Image/*": "image/*", "application/pdf": "application/pdf", "text/markdown": "text/markdown",
			"*/*":      "!all types are what a service takes without the key: leave it out",
			"png":      "!expected a media type, as application/pdf, or all of a kind, as image/*",
			"image/no": "!files of the type image/no are not recognized by their content"},
		"rpID": {"A.example": "a.example", "10.0.0.1": "!expected a domain such as example.com, without scheme " +
			"and port: passkeys are not bound to addresses"},
		"host": {"smtp.example.com": "smtp.example.com", "a b": "!expected a host such as smtp.example.com"},
		"origin": {"capacitor://localhost": "capacitor://localhost",
			"https://a.example/b": "!expected an origin such as https://app.example.com, without a path"},
		"property": {"uuid": "uuid", "a.b": "!expected the name of a top-level property, without dots"},
		"name": {"a-1": "a-1",
			"1": "!expected a name of 1 to 63 letters, digits, _ and -, beginning with a letter"},
		"address": {"[::1]:80": "[::1]:80",
			"": "!expected host:port, such as 127.0.0.1:8080, or :8080 for every interface"},
	} {
		f := FormatOf(is)
		for text, want := range texts {
			got, err := f.Parse(folder, text)
			shown := fmt.Sprint(got)
			if err != nil {
				shown = "!" + err.Error()
			}
			if shown != want {
				t.Errorf("%s of %q is %q, want %q", is, text, shown, want)
			}
		}
	}
}
