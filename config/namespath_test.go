package config

import (
	"strings"
	"testing"
)

// Each key whose value is a path is known as one, and no other.
func TestKeysOfPaths(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"data": true, "ca": true, "bus.tls.ca": true, "bus.config": true, "backup.folder": true, "static.folder": true,
		"http.tls.cert": true, "stores.Books.schema": true, "mailers.post.folder": true,
		"backends.main.folder": true, "binaries.files.folder": true,
		"authentication.places": true, "authentication.providers.apple.privateKeyFile": true,
		"stores.Books.indexes": false, "stores.schema.owner": false, "mailers.folder.host": false, "stores": false,
		"stores.Books": false, "limits.address.reads": false, "x.schema": false, "": false,
		"authentication.providers.apple.privateKey": false,
	} {
		if got := NamesPath(strings.Split(key, ".")); got != want {
			t.Errorf("%s: %v", key, got)
		}
	}
	walked := 0
	walkPaths(t, func(key string) {
		walked++
		if !NamesPath(strings.Split(key, ".")) {
			t.Errorf("%s has a path", key)
		}
	})
	if walked < 8 {
		t.Errorf("the examples have %d keys of paths", walked)
	}
}

// walkPaths calls visit for each key of the full example whose value is a path.
func walkPaths(t *testing.T, visit func(key string)) {
	t.Helper()
	c, err := Load("testdata/full.yaml", environment)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c.Paths() {
		if p.Key != "" && c.IsSet(p.Key) && !strings.Contains(c.Shown(), "${file:") {
			key, _, _ := strings.Cut(p.Key, "[")
			visit(key)
		}
	}
}
