package documents

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app/starter"
)

var (
	update = flag.Bool("update", false, "write the expected documents and routes anew")
	keep   = flag.String("keep", "", "folder into which the documents are written, to compare them by hand")
)

var documentVersion = regexp.MustCompile(`"version": "[^"]*"`)

// shipped returns the configurations whose documents and routes are compared with those of before, by their names.
func shipped(t *testing.T) map[string]*config.Config {
	t.Helper()
	all := map[string]*config.Config{}
	for _, template := range starter.Templates() {
		folder := t.TempDir()
		if _, err := starter.Write(folder, template); err != nil {
			t.Fatal(err)
		}
		all["init "+template] = load(t, filepath.Join(folder, filepath.FromSlash(starter.ConfigFile)))
	}
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("configurations: %v, %v", files, err)
	}
	for _, file := range append(files, "../../config/belfry.yaml", "../../config/demo.yaml",
		"../../config/testdata/full.yaml") {
		all[filepath.Base(file)] = load(t, file)
	}
	return all
}

// appleKey makes a key for Sign in with Apple.
func appleKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// compare compares lines with those of a file.
func compare(t *testing.T, file string, lines []string) {
	t.Helper()
	slices.Sort(lines)
	text := strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	expected := strings.Split(strings.TrimSuffix(string(want), "\n"), "\n")
	for _, line := range lines {
		if !slices.Contains(expected, line) {
			t.Errorf("%s lacks %s", file, line)
		}
	}
	for _, line := range expected {
		if !slices.Contains(lines, line) {
			t.Errorf("%s has %s, which there is no more", file, line)
		}
	}
}

// A change of code alone leaves the documents as they are, byte for byte. After one that is meant to change them, go
// test ./test/documents -run 'Golden' -update writes their hashes anew.
func TestGoldenDocuments(t *testing.T) {
	var lines []string
	for name, c := range shipped(t) {
		for kind, write := range writers() {
			text, err := write(c)
			if err != nil {
				t.Fatalf("%s of %s: %v", kind, name, err)
			}
			text = documentVersion.ReplaceAll(text, []byte(`"version": ""`))
			sum := sha256.Sum256(text)
			lines = append(lines, fmt.Sprintf("%s %s %s", name, kind, hex.EncodeToString(sum[:])))
			if *keep != "" {
				if err := os.WriteFile(filepath.Join(*keep, strings.ReplaceAll(name, " ", "-")+"-"+kind+".json"), text,
					0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	compare(t, "testdata/golden.sums", lines)
}

// The routes of a process stay as they are.
func TestGoldenRoutes(t *testing.T) {
	var lines []string
	for _, name := range []string{"init blog", "init todo", "init chat", "init recipes",
		"everything.yaml", "passkeys.yaml", "small.yaml", "conditions.yaml"} {
		c := shipped(t)[name]
		c.Listen = "127.0.0.1:0"
		if c.Bus.Listen != "" {
			c.Bus.Listen = "127.0.0.1:0"
		}
		for _, route := range start(t, c).Routes() {
			lines = append(lines, name+": "+route)
		}
	}
	compare(t, "testdata/golden.routes", lines)
}
