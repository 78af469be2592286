package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app"
	"belfry/pkg/app/command"
	"belfry/pkg/app/plan"
	"belfry/pkg/client"
	"belfry/pkg/object"
)

const cookbook = "../../docs/guides/rules.md"

// fewest is how many recipes the page promises at least.
const fewest = 20

// recipe is a section of the page with a configuration and requests.
type recipe struct {
	title, config string
	rows          []row
	allowed       int
	refused       int
}

// row is a request and its answer, as in: - Ann: `GET /recipes/{Soup}` → 200 with `Soup`
type row struct {
	line             int
	text             string
	refused          bool
	caller           string
	method, path     string
	body             string
	status           int
	contains, misses string
}

var (
	heading   = regexp.MustCompile(`^## (.+)$`)
	rowSyntax = regexp.MustCompile("^- (Ann|Bob|Mona|Ada|Visitor): `(GET|POST|PUT|PATCH|DELETE) (/[^`]*?)(?: " +
		"({\"[^`]*}))?` → (\\d{3})(?: with `([^`]+)`)?(?: without `([^`]+)`)?$")
	named = regexp.MustCompile(`\{([^{}":,]+)\}`)
)

// recipes reads the page. Sections without a configuration are no recipes.
func recipes(page string) (all []recipe, err error) {
	var current *recipe
	var yaml []string
	inYAML, refused := false, false
	for i, line := range strings.Split(page, "\n") {
		if inYAML {
			if inYAML = line != "```"; inYAML {
				yaml = append(yaml, line)
			} else {
				current.config, yaml = strings.Join(yaml, "\n")+"\n", nil
			}
			continue
		}
		if found := heading.FindStringSubmatch(line); found != nil {
			all = append(all, recipe{title: found[1]})
			current = &all[len(all)-1]
		}
		switch {
		case current == nil:
		case line == "```yaml" && current.config != "":
			return nil, fmt.Errorf("line %d: a second configuration of the recipe %q", i+1, current.title)
		case line == "```yaml":
			inYAML = true
		case line == "Allowed:", line == "Refused:":
			refused = line == "Refused:"
		case strings.HasPrefix(line, "- ") && current.config != "":
			r, err := parseRow(line, refused)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+1, err)
			}
			r.line = i + 1
			current.rows = append(current.rows, r)
			if refused {
				current.refused++
			} else {
				current.allowed++
			}
		}
	}
	kept := all[:0]
	for _, r := range all {
		if r.config != "" {
			kept = append(kept, r)
		}
	}
	return kept, nil
}

func parseRow(line string, refused bool) (r row, err error) {
	found := rowSyntax.FindStringSubmatch(line)
	if found == nil {
		return r, fmt.Errorf("%q is no request with an answer", line)
	}
	r = row{text: line, refused: refused, caller: found[1], method: found[2], path: found[3], body: found[4],
		contains: found[6], misses: found[7]}
	if _, err := fmt.Sscan(found[5], &r.status); err != nil {
		return r, err
	}
	switch denied := r.status >= http.StatusBadRequest || r.misses != ""; {
	case refused && !denied:
		return r, fmt.Errorf("%q refuses nothing", line)
	case !refused && r.status >= http.StatusBadRequest:
		return r, fmt.Errorf("%q allows nothing", line)
	}
	return r, nil
}

// people are the users of the page.
var people = []string{"Ann", "Bob", moderator, admin}

// The users with rights, as the page introduces them.
const (
	moderator = "Mona" // has role: moderator
	admin     = "Ada"  // has admin: true
)

// kitchen is a data folder with the people, which each recipe gets a copy of.
type kitchen struct {
	data   string
	tokens map[string]string
	uuids  map[string]string
}

// base is what a recipe is served with.
const base = `
listen: 127.0.0.1:0
bus: {listen: ""}
data: %q
authentication: {providers: {email: {postValidation: true, skipEmailValidation: true}}}
`

func load(t *testing.T, data, stores string) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, base+"%s", data, stores), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serve(t *testing.T, c *config.Config) *app.App {
	t.Helper()
	a, err := app.Start(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Stop(context.Background()) })
	return a
}

// newKitchen registers the people.
func newKitchen(t *testing.T) *kitchen {
	t.Helper()
	k := &kitchen{data: filepath.Join(t.TempDir(), "data"), tokens: map[string]string{}, uuids: map[string]string{}}
	c := load(t, k.data, "")
	a := serve(t, c)
	for _, name := range people {
		r := row{caller: "Visitor", method: http.MethodPost, path: "/auth/email",
			body: fmt.Sprintf(`{"register":true,"login":"%s@example.com","password":"correct horse %[1]s"}`,
				strings.ToLower(name))}
		reply := k.send(t, a, r)
		for _, cookie := range reply.cookies {
			if strings.HasSuffix(cookie.Name, "belfry") && cookie.MaxAge > 0 {
				k.tokens[name] = cookie.Value
			}
		}
		me := k.send(t, a, row{caller: name, method: http.MethodGet, path: "/auth/me"})
		user, err := object.Decode([]byte(me.body))
		if err != nil || me.status != http.StatusOK {
			t.Fatalf("%s is not logged in: %d %s, then %d %s", name, reply.status, reply.body, me.status, me.body)
		}
		k.uuids[name], _ = user.Text("uuid")
	}
	role := map[string]string{"uuid": k.uuids[moderator], "role": "moderator"}
	if _, err := client.New(a.Bus().Conn()).Store("Users").Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := command.Users.Do(t.Context(), c,
		command.UserRequest{Act: command.GrantAdmin, User: k.uuids[admin]}); err != nil {
		t.Fatal(err)
	}
	return k
}

type reply struct {
	status  int
	body    string
	cookies []*http.Cookie
}

// send sends a request, which is answered once the arrays that rules read have what it wrote.
func (k *kitchen) send(t *testing.T, a *app.App, r row) reply {
	t.Helper()
	path := (&url.URL{Path: r.path}).EscapedPath()
	req, err := http.NewRequestWithContext(t.Context(), r.method, "http://"+a.HTTPAddress()+path,
		strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Prefer", "wait=60")
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token := k.tokens[r.caller]; token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, string(body), res.Cookies()}
}

// run sends the requests of a recipe, in order.
func (k *kitchen) run(t *testing.T, r recipe) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(data, os.DirFS(k.data)); err != nil {
		t.Fatal(err)
	}
	a := serve(t, load(t, data, r.config))
	uuids := maps.Clone(k.uuids)
	insert := func(at row, text string) string {
		return named.ReplaceAllStringFunc(text, func(name string) string {
			uuid, known := uuids[name[1:len(name)-1]]
			if !known {
				t.Fatalf("%s:%d: nothing was created with the text %s", cookbook, at.line, name)
			}
			return uuid
		})
	}
	for _, one := range r.rows {
		request := one
		request.path, request.body = insert(one, one.path), insert(one, one.body)
		got := k.send(t, a, request)
		switch {
		case got.status != one.status:
			t.Errorf("%s:%d: %s\nthe answer is %d: %s", cookbook, one.line, one.text, got.status, got.body)
		case !strings.Contains(got.body, one.contains), one.misses != "" && strings.Contains(got.body, one.misses):
			t.Errorf("%s:%d: %s\nthe answer has: %s", cookbook, one.line, one.text, got.body)
		}
		if one.method != http.MethodPost || got.status != http.StatusCreated {
			continue
		}
		created, err := object.Decode([]byte(got.body))
		if err != nil {
			t.Fatal(err)
		}
		sent, err := object.Decode([]byte(one.body))
		if err != nil {
			t.Fatal(err)
		}
		for name := range sent {
			if text, ok := sent.Text(name); ok {
				uuids[text], _ = created.Text("uuid")
			}
		}
	}
}

// Each recipe of the cookbook allows and refuses what the page says.
func TestRecipesOfRules(t *testing.T) {
	page, err := os.ReadFile(cookbook)
	if err != nil {
		t.Fatal(err)
	}
	all, err := recipes(string(page))
	if err != nil {
		t.Fatalf("%s: %v", cookbook, err)
	}
	if len(all) < fewest {
		t.Errorf("the page has %d recipes, want at least %d", len(all), fewest)
	}
	k := newKitchen(t)
	for _, r := range all {
		t.Run(r.title, func(t *testing.T) {
			t.Parallel()
			if r.allowed == 0 || r.refused == 0 {
				t.Errorf("%d requests are allowed and %d refused, want both", r.allowed, r.refused)
			}
			k.run(t, r)
		})
	}
}

// A row that says nothing, or that a reader would misread, is an error of the page.
func TestRowsOfRecipesAreChecked(t *testing.T) {
	for _, line := range []string{
		"- Ann: `GET /recipes` → yes",
		"- Eve: `GET /recipes` → 200",
		"- Ann: `GET /recipes` → 200, of course",
		"- Ann: GET /recipes → 200",
	} {
		if _, err := parseRow(line, false); err == nil {
			t.Errorf("%s is a row", line)
		}
	}
	if _, err := parseRow("- Ann: `GET /recipes` → 200 with `Soup`", true); err == nil {
		t.Error("a request that is answered is refused")
	}
	if _, err := parseRow("- Ann: `GET /recipes` → 403", false); err == nil {
		t.Error("a request that is denied is allowed")
	}
	page := "## One\n\n```yaml\nstores: {}\n```\n\nAllowed:\n\n- Ann: `PUT /recipes/{Soup} {\"title\":\"Stew\"}` → " +
		"200 with `Stew` without `Soup`\n\nRefused:\n\n- Visitor: `GET /recipes` → 401\n\n## Two\n\n- No recipe.\n"
	all, err := recipes(page)
	if err != nil || len(all) != 1 || all[0].title != "One" || all[0].config != "stores: {}\n" || all[0].allowed != 1 ||
		all[0].refused != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	if r := all[0].rows[0]; r.path != "/recipes/{Soup}" || r.body != `{"title":"Stew"}` || r.status != 200 ||
		r.contains != "Stew" || r.misses != "Soup" || r.line != 9 {
		t.Errorf("%+v", r)
	}
}

// The configurations of other pages about stores are valid, with the schema that the page shows.
func TestConfigurationsOfStoresAreValid(t *testing.T) {
	block := regexp.MustCompile("(?ms)^```(yaml|json)\n(.*?)^```$")
	for page, want := range map[string]int{"reference/rules.md": 3, "reference/schemas.md": 2,
		"guides/interceptors.md": 1} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		if err := os.Mkdir(filepath.Join(folder, "schemas"), 0o700); err != nil {
			t.Fatal(err)
		}
		var configs []string
		for _, found := range block.FindAllStringSubmatch(string(text), -1) {
			switch content := found[2]; {
			case found[1] == "yaml" && strings.HasPrefix(content, "stores:"):
				configs = append(configs, content)
			case found[1] == "json" && strings.Contains(content, `"properties"`):
				if err := os.WriteFile(filepath.Join(folder, "schemas", "recipe.json"), []byte(content),
					0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(configs) != want {
			t.Errorf("%s has %d configurations of stores, want %d", page, len(configs), want)
		}
		for _, text := range configs {
			file := filepath.Join(folder, "belfry.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := config.Load(file, func(string) (string, bool) { return "", false })
			if err == nil {
				err = plan.CheckStrictly(c)
			}
			if err != nil {
				t.Errorf("%s: %v in\n%s", page, err, text)
			}
		}
	}
}
