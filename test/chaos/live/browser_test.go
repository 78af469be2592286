package live

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "belfry/test/backing" // marks a package that needs more than Go; make test-unit skips it
	"belfry/test/kit"
	"belfry/test/process"
)

// The browser example of the documentation receives events, reconnects by itself,
// and opens a new stream where a browser gives up.
func TestBrowserExampleReceivesEventsAndReconnects(t *testing.T) {
	page, err := os.ReadFile("../../../docs/guides/live.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```js\n(.*?function listen.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("the page has no example")
	}
	folder := t.TempDir()
	address := "127.0.0.1:" + strconv.Itoa(kit.FreePort(t))
	config, script := filepath.Join(folder, "belfry.yaml"), filepath.Join(folder, "example.mjs")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(config, strings.NewReplacer("listen: 127.0.0.1:0\n", "listen: "+address+"\n",
		"Books: {expose: {events: true}}", "Books: {expose: {list: true}}").Replace(configuration))
	const pause = "1000 + 2000 * Math.random()"
	if !strings.Contains(string(example[1]), pause) {
		t.Fatalf("the example does not wait for %s", pause)
	}
	write(script, "globalThis.location = {href: 'http://"+address+"/a/page'}\n"+
		strings.NewReplacer("'Recipes'", "'Books'", "'/recipes'", "'http://"+address+"/books'", pause, "200").
			Replace(string(example[1])))
	first := process.Serve(t, config)

	out := &kit.Tail{}
	browser := exec.CommandContext(t.Context(), "node", "--experimental-eventsource", "--no-warnings", script)
	browser.Stdout, browser.Stderr = out, out
	if err := kit.Start(browser); err != nil {
		t.Fatalf("the test needs Node: %v", err)
	}
	t.Cleanup(func() {
		_ = browser.Process.Kill()
		_ = browser.Wait()
	})
	w := &fixture{T: t, server: first, http: newHTTP()}
	receives := func(what string) {
		t.Helper()
		process.Eventually(t, time.Minute, func() error {
			if text := out.String(); strings.Count(text, what) != 1 {
				return errors.New("not received exactly once: " + what + "\n" + text)
			}
			return nil
		})
	}
	receives(`{"items":[]}`) // the objects are read once the stream has begun
	w.do("POST", "/books", "", `{"uuid":"emma"}`, 201)
	receives("Store.Saved emma")
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	receives("events: the server stops")
	refuse(t, address)
	w.server = process.Serve(t, config)
	w.do("POST", "/books", "", `{"uuid":"persuasion"}`, 201)
	w.do("DELETE", "/books/emma", "", "", 204)
	receives("Store.Saved persuasion")
	receives("Store.Deleted emma")
	receives("Store.Saved emma")
	receives("Store.Saved persuasion") // a second stream would have received it by now
}

// refuse closes the next connection to an address. The client of the example reports that twice, and opens one stream.
func refuse(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}
