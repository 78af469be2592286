package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"belfry/test/kit"
	"belfry/test/kit/programs"
	"belfry/test/process"
)

// tutorial is the page docs/tutorial/recipes.md, of which a reader has followed some steps.
type tutorial struct {
	*fixture
	page   string // of which a part is done
	port   string
	folder string
	output *kit.Tail
	served *exec.Cmd
}

// block is a code block of a page, and the line before it.
var block = regexp.MustCompile("(?s)([^\n]*)\n+```(\\w+)\n(.*?)```\n")

var named = regexp.MustCompile("(Save this as|Add this at the end of) `([^`]+)`:$")

// TestTutorial does what docs/tutorial/recipes.md says: its files, its commands, and in the browser what it asks people
// to do.
func TestTutorial(t *testing.T) {
	text, err := os.ReadFile("../../docs/tutorial/recipes.md")
	if err == nil {
		_, err = programs.Command("curl")
	}
	if err != nil {
		t.Fatal(err)
	}
	tt := &tutorial{port: strconv.Itoa(kit.FreePort(t)), folder: t.TempDir()}
	tt.page = strings.ReplaceAll(string(text), "8080", tt.port)
	tt.fixture = &fixture{top: t, folder: tt.folder, worksOnly: true, URL: "http://localhost:" + tt.port}

	// What the first section makes: the program that is tested is in place of a new build.
	for _, folder := range []string{"config", "site"} {
		if err := os.Mkdir(filepath.Join(tt.folder, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(process.Plain(t), filepath.Join(tt.folder, "belfry")); err != nil {
		t.Fatal(err)
	}
	if build := tt.section(t, "## 1. Make a project", "Save this as"); !strings.Contains(build,
		"make build\nmkdir -p ../recipes/config ../recipes/site\ncp bin/belfry ../recipes/\ncd ../recipes\n") {
		t.Errorf("the page begins with other commands: %s", build)
	}
	tt.follow(t, "## 2. Start belfry")

	tt.tab = openBrowser(t)
	go tt.listen(chromedp.Console(tt.tab))
	tt.follow(t, "## 3. Write the page")
	link := regexp.MustCompile(`admin\s+http://localhost:\d+(\S+)`).FindStringSubmatch(tt.output.String())
	if link == nil {
		t.Fatalf("no link for the first admin in:\n%s", tt.output)
	}
	tt.open(t, link[1])
	tt.fill(t, "#login", address)
	tt.fill(t, "#password", password)
	tt.keysIn(t, "#password", "\r")
	tt.shows(t, "Recipes")

	tt.follow(t, "## 4. Add comments")
	tt.load(t)
	tt.rename(t, "Emma")
	tt.publish(t, "Waffles", "")
	tt.shows(t, "by Emma")
	tt.shows(t, "Account")

	tt.follow(t, "## 5. Add pictures")
	tt.load(t)
	tt.comment(t, "Waffles", "With syrup")
	tt.click(t, ".rate:nth-of-type(4)")
	tt.until(t, func() error {
		if reply := tt.sh(t, "curl -s http://localhost:"+tt.port+"/recipes"); !strings.Contains(reply,
			`"author":"Emma","text":"With syrup"`) || !strings.Contains(reply, `"ratings":1,"stars":4`) {
			return fmt.Errorf("the recipe lacks its comment or its rating: %s", reply)
		}
		return nil
	})
	tt.load(t)
	tt.shows(t, "Emma: With syrup")
	tt.shows(t, "4.0 stars of 1")

	tt.follow(t, "## 6. Make it live")
	tt.load(t)
	picture := dotFile(t)
	tt.publish(t, "Pancakes", picture)
	tt.until(t, func() error {
		tt.load(t)
		_, err := attempt[bool](tt.fixture, `document.querySelector("img").decode().then(() => true)`,
			chromedp.EvalAwaitPromise)
		return err
	})

	tt.follow(t, "## 7. Prove that the copies are right")
	tt.load(t)
	other, closeTab := chromedp.NewContext(tt.tab) // a second window of the same person
	defer closeTab()
	if err := chromedp.Do(other); err != nil { // the tab is open until the end of its first context
		t.Fatal(err)
	}
	first := tt.tab
	tt.tab = other
	tt.load(t)
	tt.comment(t, "Pancakes", "Thin ones")
	tt.tab = first
	tt.shows(t, "Emma: Thin ones")
	tt.tab = other
	tt.rename(t, "Emma Stone")
	tt.tab = first
	tt.shows(t, "by Emma Stone")
	tt.shows(t, "Emma Stone: Thin ones")
	tt.checkComplaints(t)

	// A command of the page: it waits for the workers.
	if proof := tt.sh(t, "./belfry verify"); !regexp.MustCompile(`[1-9]\d* entries: 0 differences`).MatchString(proof) {
		t.Errorf("verify says: %s", proof)
	}
	tt.follow(t, "## Next steps")
}

// section cuts off the page what comes before the first of several texts, and returns it.
func (tt *tutorial) section(t *testing.T, heading, next string) string {
	t.Helper()
	_, rest, ok := strings.Cut(tt.page, heading)
	part, _, more := strings.Cut(rest, next)
	if !ok || !more {
		t.Fatalf("the page has no %q before %q", heading, next)
	}
	tt.page = rest[len(part):]
	return part
}

// follow does what the page says in its code blocks, up to a heading.
func (tt *tutorial) follow(t *testing.T, heading string) {
	t.Helper()
	part, rest, ok := strings.Cut(tt.page, heading)
	if !ok {
		t.Fatalf("the page has no heading %q", heading)
	}
	tt.page = rest
	last := ""
	for _, m := range block.FindAllStringSubmatch(part, -1) {
		before, language, text := m[1], m[2], m[3]
		file := named.FindStringSubmatch(before)
		switch {
		case file != nil:
			tt.write(t, file[2], text, file[1] == "Save this as")
		case language == "sh" && text == "./belfry serve\n":
			tt.serve(t)
		case language == "sh":
			last = tt.sh(t, text)
		case language == "json":
			if !answers(last, text) {
				t.Errorf("the page shows %s, the answer is %s", text, last)
			}
		default:
			t.Errorf("no reader knows what to do with this: %s\n%s", before, text)
		}
	}
}

// answers reports whether an answer is the one that a page shows, where … stands for anything.
func answers(answer, shown string) bool {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.Join(strings.Fields(shown), "")), "…", ".*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(strings.Join(strings.Fields(answer), ""))
}

func (tt *tutorial) write(t *testing.T, name, text string, fresh bool) {
	t.Helper()
	path := filepath.Join(tt.folder, name)
	if !fresh {
		former, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text = string(former) + text
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// sh runs commands in the folder of the project.
func (tt *tutorial) sh(t *testing.T, commands string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", commands)
	cmd.Dir = tt.folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", commands, err, out)
	}
	return string(out)
}

// serve starts belfry as the page says.
func (tt *tutorial) serve(t *testing.T) {
	t.Helper()
	tt.output = &kit.Tail{}
	tt.served = exec.CommandContext(t.Context(), "./belfry", "serve")
	tt.served.Dir, tt.served.Stdout, tt.served.Stderr = tt.folder, tt.output, tt.output
	if err := kit.Start(tt.served); err != nil {
		t.Fatal(err)
	}
	tt.until(t, func() error {
		if !strings.Contains(tt.output.String(), "msg=ready") {
			return fmt.Errorf("belfry is not ready:\n%s", tt.output)
		}
		return nil
	})
}

// load opens the page of the tutorial, and waits for its list.
func (tt *tutorial) load(t *testing.T) {
	t.Helper()
	tt.run(t, chromedp.Navigate(tt.URL+"/"), chromedp.WaitVisible(chromedp.CSS("#account a")))
}

// rename saves the name of the user, and waits until belfry has it.
func (tt *tutorial) rename(t *testing.T, name string) {
	t.Helper()
	tt.fill(t, "#name [name=name]", name)
	tt.click(t, "#name button")
	tt.until(t, func() error {
		saved, err := attempt[string](tt.fixture, `fetch("/auth/me").then(r => r.json()).then(me => me.name)`,
			chromedp.EvalAwaitPromise)
		if err == nil && saved != name {
			err = fmt.Errorf("the name is %q", saved)
		}
		return err
	})
}

// publish fills in the form for a recipe, with a picture if there is a file.
func (tt *tutorial) publish(t *testing.T, title, picture string) {
	t.Helper()
	tt.fill(t, "#new [name=title]", title)
	tt.fill(t, "#new [name=steps]", "Mix, and bake.")
	if picture != "" {
		tt.run(t, chromedp.SetUploadFiles(chromedp.CSS("#new [name=picture]"), []string{picture}))
	}
	tt.click(t, "#new button")
	tt.until(t, func() error {
		titles, err := attempt[string](tt.fixture,
			`[...document.querySelectorAll("h2")].map(h => h.textContent).join()`)
		if err == nil && !strings.Contains(titles, title) {
			err = fmt.Errorf("the page shows %q", titles)
		}
		return err
	})
	tt.until(t, func() error { // the form is empty once all of it is sent
		rest, err := attempt[string](tt.fixture, `document.querySelector("#new [name=title]").value`)
		if err == nil && rest != "" {
			err = fmt.Errorf("the form has %q", rest)
		}
		return err
	})
}

// comment writes a comment to a recipe.
func (tt *tutorial) comment(t *testing.T, title, text string) {
	t.Helper()
	form := fmt.Sprintf(`//article[h2=%q]//`, title)
	tt.run(t, chromedp.Focus(chromedp.Search(form+"input"), chromedp.NodeVisible), chromedp.KeyEvent(text),
		chromedp.Click(chromedp.Search(form+"button"), chromedp.NodeVisible))
}
