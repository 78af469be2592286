package backends

import (
	"os"
	"path/filepath"
	"testing"

	"belfry/test/process"
)

// The shipped configurations serve unchanged, with the addresses of the
// environment.
func TestShippedConfigurationsServe(t *testing.T) {
	t.Parallel()
	for file, address := range map[string]func(){
		"mongodb.yaml": func() { setenv("MONGODB_URL", servers.mongo().URL) },
		"dynamodb.yaml": func() {
			setenv("DYNAMODB_ENDPOINT", servers.dynalite().URL)
			setenv("S3_ENDPOINT", servers.s3().Endpoint)
			setenv("S3_BUCKET", servers.s3().Bucket)
		},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			address()
			config := inFolder(t, file)
			s := process.Serve(t, config, "--listen", "127.0.0.1:0")
			must(t, s, 201, "POST", "/authors", `{"uuid":"ada","name":"Ada"}`)
			must(t, s, 201, "POST", "/books", `{"uuid":"notes","author":"ada","title":"Notes","year":1843}`)
			must(t, s, 201, "PUT", "/binary/upload/Books/notes/covers/add", "a cover")
			eventually(t, s, "/authors/ada", "books.0.title", "Notes")
			if got := must(t, s, 200, "GET", "/binary/Books/notes/covers/0", "").body; string(got) != "a cover" {
				t.Errorf("the cover is %q", got)
			}
			must(t, s, 200, "GET", "/readyz", "")
			verified(t, config)
			stop(t, s)
			verified(t, config)
		})
	}
}

// inFolder copies a configuration and the files it refers to, so that the test has
// its own data.
func inFolder(t *testing.T, file string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "config")
	if err := os.CopyFS(filepath.Join(folder, "schemas"), os.DirFS("../../config/schemas")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("../../config", file))
	if err != nil {
		t.Fatal(err)
	}
	return write(t, folder, file, string(text))
}
