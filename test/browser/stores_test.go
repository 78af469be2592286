package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// startStores starts a browser and a belfry of its own, on a configuration of testdata and the schemas that it names,
// and logs its first admin in. The browser leaves a page when it asks whether to.
func startStores(t *testing.T, config string, schemas ...string) *fixture {
	t.Helper()
	f := &fixture{top: t, folder: t.TempDir(), worksOnly: true}
	for _, name := range append(schemas, config) {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if name == config {
			name = "belfry.yaml"
		}
		f.write(t, name, text)
	}
	f.serve(t)
	f.axe = axeScript(t)
	f.tab = openBrowser(t)
	go f.listen(chromedp.Console(f.tab))
	go f.leaves()
	f.makeFirstAdmin(t)
	f.worksOnly = false
	return f
}
