package app

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app/command"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
)

// Problems that only compiling finds are reported like all others: with the file,
// the line and the key, and all of them at once.
func TestCheckReportsThePlaceOfEachProblem(t *testing.T) {
	p := newPlace(t, "")
	p.write("good.json", `{"type":"object"}`)
	p.write("bad.json", `{"type":`)
	p.write("remote.json", `{"$ref":"http://example.com/schema"}`)
	c := p.load(`authentication: {providers: {email: {html: "{{.Foo}} {{.Link}}"}}}

stores:
  Authors:
    schema: bad.json
    policy:
      get: object.public
      update: >-
        usr.uuid
        == object.owner
  Books:
    schema: remote.json
    policy: {create: 1 + 1}
  Films:
    schema: remote.json
    intercept: {save: [{name: moderation}]}
  Games:
    schema: good.json
    policy: owner
`)
	err := plan.Check(c)
	var problems config.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("%v", err)
	}
	text := problems.Error()
	for _, want := range []string{
		"belfry.yaml:1:30: authentication.providers.email: the mail's html can't be rendered",
		"belfry.yaml:5:5: stores.Authors.schema: ",
		"belfry.yaml:8:7: stores.Authors.policy.update: in the expression at 1:1: undeclared reference to 'usr'",
		"belfry.yaml:12:5: stores.Books.schema: ", "belfry.yaml:13:14: stores.Books.policy.create: ",
		"must be true or false", "belfry.yaml:15:5: stores.Films.schema: ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if len(problems) != 6 || strings.Contains(text, "Games") {
		t.Errorf("%d problems:\n%s", len(problems), text)
	}
	for name, refused := range map[string]error{
		"serve":  func() error { _, err := Start(t.Context(), c, p.log()); return err }(),
		"verify": func() error { _, err := command.Verify.Do(t.Context(), c, command.VerifyRequest{}); return err }(),
		"export": func() error { _, err := p.export(c, "Books"); return err }(),
	} {
		if !errors.As(refused, &problems) {
			t.Errorf("%s: %v", name, refused)
		}
	}
	if _, err := os.Stat(c.Data); !os.IsNotExist(err) {
		t.Errorf("a wrong configuration makes the data folder: %v", err)
	}
}

// A rule of which an index has no terms is refused where searches would tell of what it hides.
func TestCheckReportsRulesThatSearchesCanNotKeep(t *testing.T) {
	p := newPlace(t, "")
	for search, refused := range map[string]bool{
		`policy: {list: "isOwner || object.level > user.level"}, search: {fields: [text]}`:                     true,
		`policy: {get: "isOwner || object.level > user.level"}, search: {fields: [text], statistics: own}`:     true,
		`policy: {list: "isOwner || object.level > user.level"}, search: {fields: [text], statistics: shared}`: false,
		`policy: {list: "isOwner || object.level > user.level"}`:                                               false,
		`policy: {list: "isOwner || object.level == user.level"}, search: {fields: [text]}`:                    false,
		`policy: {list: "user.level > 3", get: isOwner}, search: {fields: [text]}`:                             false,
		`policy: owner, search: {fields: [text]}`:                                                              false,
	} {
		err := plan.Check(p.load("stores:\n  Notes: {expose: {list: true}, owner: user, " + search + "}\n"))
		if !refused {
			if err != nil {
				t.Errorf("%s: %v", search, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "belfry.yaml:2:") ||
			!strings.Contains(err.Error(), "stores.Notes.search: the rule of ") ||
			!strings.Contains(err.Error(), " has a part at 1:25") ||
			!strings.Contains(err.Error(), "statistics: shared") {
			t.Errorf("%s: %v", search, err)
		}
	}
}

func TestCheckReportsARuleOfAdminsThatCannotBe(t *testing.T) {
	for rule, want := range map[string]string{
		`user.admin == tru`: "belfry.yaml:1:1: admins: in the expression at 1:15: undeclared reference to 'tru'",
		`object.admin`:      "this rule knows only `user`",
		`1 + 1`:             "must be true or false",
	} {
		var problems config.Problems
		if err := plan.Check(newPlace(t, "").load("admins: " + rule + "\n")); !errors.As(err, &problems) ||
			len(problems) != 1 || !strings.Contains(problems.Error(), want) {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

// What belfry decides by must be set by nobody else.
func TestTheUserStoreReservesWhatAuthenticationDecidesBy(t *testing.T) {
	p, err := plan.Compile(newPlace(t, "").load("authentication: {userStore: People}\nstores: {Notes: {}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Stores {
		want := []string(nil)
		if p.Stores[i].Name == "People" {
			want = []string{"admin", "disabled"}
		}
		if !slices.Equal(p.Stores[i].Reserved, want) {
			t.Errorf("%s reserves %q, want %q", p.Stores[i].Name, p.Stores[i].Reserved, want)
		}
	}
}

// The condition of a mapping sees the object alone, and nothing that workers write in it.
func TestCheckReportsConditionsThatCannotBe(t *testing.T) {
	c := newPlace(t, "").load(`stores:
  Authors: {}
  Books:
    private: secret
    map:
      Authors: {key: author, target: books, when: source.owner == user.uuid}
      Pages: {key: page, target: books, when: size(source.reviews) > 0 && has(source._x)}
      Films: {key: film, target: books, when: "source.secret == 'shown' && size(source.photos) > 0"}
  Films: {fields: {books: {read: isOwner}}, owner: user}
  Pages: {}
  Reviews:
    map: {Books: {key: book, target: reviews}}
`)
	var problems config.Problems
	if err := plan.Check(c); !errors.As(err, &problems) {
		t.Fatal(err)
	}
	text := problems.Error()
	for _, want := range []string{
		"belfry.yaml:6:45: stores.Books.map.Authors.when: in the expression at 1:17: undeclared reference to 'user'; " +
			"a condition knows only `source`",
		`belfry.yaml:7:41: stores.Books.map.Pages.when: "reviews" is an array that a mapping maintains; its changes would not be noticed`,
		`belfry.yaml:7:41: stores.Books.map.Pages.when: "_x" is internal to belfry`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if len(problems) != 3 {
		t.Errorf("%d problems:\n%s", len(problems), text)
	}
}

// A mapping by owners knows the fields that hold them, which in the user store is the uuid.
func TestMappingsByOwnersKnowTheOwners(t *testing.T) {
	p, err := plan.Compile(newPlace(t, "").load(`stores:
  Albums: {owner: by}
  Photos:
    policy: owner
    map:
      Albums: {key: album, target: photos, sameOwner: true}
      Users: {key: user, target: photos, sameOwner: true}
  Films:
    map: {Albums: {key: album, target: films}}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for i := range p.Mappings {
		m := &p.Mappings[i]
		got[m.Source+" in "+m.Target] = m.SourceOwner + " " + m.TargetOwner
	}
	for mapping, want := range map[string]string{"Photos in Albums": "user by", "Photos in Users": "user uuid",
		"Films in Albums": " ", "Idents in Users": " "} {
		if got[mapping] != want {
			t.Errorf("%s: %q, want %q", mapping, got[mapping], want)
		}
	}
}

func TestCheckAcceptsAValidConfiguration(t *testing.T) {
	if err := plan.Check(newPlace(t, books).config); err != nil {
		t.Error(err)
	}
}

func TestAnNKeyThatCannotBeRead(t *testing.T) {
	p := newPlace(t, books)
	p.config.Bus.URL, p.config.Bus.NKey = []string{"nats://127.0.0.1:1"}, p.path("none.nk")
	if _, err := Start(t.Context(), p.config, p.log()); !errors.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "bus.nkey") {
		t.Errorf("%v", err)
	}
}

// The bus's own configuration is read when a configuration is checked.
func TestCheckReadsTheFileOfTheBus(t *testing.T) {
	p := newPlace(t, "")
	p.write("good.conf", "jetstream {}\n")
	p.write("bad.conf", "max_payload: 1KB\n")
	if err := plan.Check(p.load("bus: {config: good.conf}\n")); err != nil {
		t.Error(err)
	}
	err := plan.Check(p.load("bus: {config: bad.conf}\nstores: {A: {schema: bad.conf}}\n"))
	var problems config.Problems
	if !errors.As(err, &problems) || len(problems) != 2 ||
		!strings.Contains(err.Error(), "belfry.yaml:1:7: bus.config: ") ||
		!strings.Contains(err.Error(), "bad.conf: max_payload is 1024 bytes") {
		t.Errorf("%v", err)
	}
}
