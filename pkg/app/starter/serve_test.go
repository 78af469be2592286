package starter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/app"
	"belfry/pkg/app/command"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/starter"
	"belfry/test/kit"
)

// served is a template that is served as it was written, but for the port.
type served struct {
	*testing.T
	url   string
	users map[string]user
	named map[string]string // uuids of objects
}

type user struct{ uuid, token string }

func serve(t *testing.T, template string) *served {
	t.Helper()
	folder := t.TempDir()
	if _, err := starter.Write(folder, template); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(filepath.Join(folder, filepath.FromSlash(starter.ConfigFile)), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(folder, "data"); c.Data != want {
		t.Errorf("the data is in %s; .gitignore names %s", c.Data, want)
	}
	if err := plan.Check(c); err != nil {
		t.Fatal(err)
	}
	if w := plan.Warnings(c); len(w) > 0 {
		t.Errorf("warnings: %v", w)
	}
	if err := c.Override("127.0.0.1:0", ""); err != nil {
		t.Fatal(err)
	}
	logged := &kit.Tail{}
	a, err := app.Start(t.Context(), c, slog.New(slog.NewTextHandler(logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if text := logged.String(); strings.Contains(text, "everyone has access") {
			t.Errorf("a store has no policy:\n%s", text)
		}
	})
	if link, err := a.FirstAdmin(t.Context(), true); err != nil || !strings.Contains(link, "/console") {
		t.Errorf("the first admin: %q, %v", link, err)
	}
	s := &served{T: t, url: "http://" + a.HTTPAddress(), users: map[string]user{"nobody": {}},
		named: map[string]string{}}
	for _, name := range []string{"ann", "bob", "eve"} {
		reply, err := command.Users.Do(t.Context(),
			c, command.UserRequest{Act: command.CreateUser, Login: name + "@example.com", Password: "a long password",
				Fields: fmt.Appendf(nil, `{"name":%q}`, name)})
		if err != nil {
			t.Fatal(err)
		}
		u := user{uuid: reply.Users[0].UUID}
		s.users[name] = u
		_, text := s.ask(name, "POST", "/auth/email",
			fmt.Sprintf(`{"login":"%s@example.com","password":"a long password"}`, name))
		var session struct{ Token string }
		if err := json.Unmarshal([]byte(text), &session); err != nil || session.Token == "" {
			t.Fatalf("the login of %s: %s", name, text)
		}
		u.token = session.Token
		s.users[name] = u
	}
	return s
}

// uuids replaces {name} in a text.
func (s *served) uuids() *strings.Replacer {
	var pairs []string
	for name, u := range s.users {
		pairs = append(pairs, "{"+name+"}", u.uuid)
	}
	for name, uuid := range s.named {
		pairs = append(pairs, "{"+name+"}", uuid)
	}
	return strings.NewReplacer(pairs...)
}

// ask sends a request as a user. {name} is the uuid of a user, or of an object that do has named.
func (s *served) ask(as, method, path, body string) (status int, text string) {
	s.Helper()
	uuids := s.uuids()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+uuids.Replace(path),
		strings.NewReader(uuids.Replace(body)))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Prefer", "wait=60")
	if path == "/auth/email" {
		r.Header.Set("Prefer", "return=representation")
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token := s.users[as].token; token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// step is a request: its reply has a status, and texts or, after "!", has not. name is given to the object.
type step struct {
	as, request, body string
	status            int
	name              string
	texts             []string
}

func (s *served) do(steps ...step) {
	s.Helper()
	for i, want := range steps {
		method, path, _ := strings.Cut(want.request, " ")
		status, text := s.ask(want.as, method, path, want.body)
		if status != want.status {
			s.Fatalf("step %d, %s by %s: %d, want %d: %s", i, want.request, want.as, status, want.status, text)
		}
		for _, part := range want.texts {
			part, absent := strings.CutPrefix(s.uuids().Replace(part), "!")
			if strings.Contains(text, part) == absent {
				s.Errorf("step %d, %s by %s: %q: %s", i, want.request, want.as, part, text)
			}
		}
		if want.name != "" {
			var o struct{ UUID string }
			if err := json.Unmarshal([]byte(text), &o); err != nil || o.UUID == "" {
				s.Fatalf("step %d: no uuid: %s", i, text)
			}
			s.named[want.name] = o.UUID
		}
	}
}

// until repeats a step until its reply is as expected: a request waits for the copies of its own object, and not for
// copies of these.
func (s *served) until(want step) {
	s.Helper()
	method, path, _ := strings.Cut(want.request, " ")
	if err := kit.Await(time.Minute, func() error {
		status, text := s.ask(want.as, method, path, want.body)
		for _, part := range want.texts {
			part, absent := strings.CutPrefix(s.uuids().Replace(part), "!")
			if status != want.status || strings.Contains(text, part) == absent {
				return fmt.Errorf("%s by %s: %q: %d %s", want.request, want.as, part, status, text)
			}
		}
		return nil
	}); err != nil {
		s.Fatal(err)
	}
}

func TestABlogShowsWhatIsPublished(t *testing.T) {
	t.Parallel()
	serve(t, "blog").do(
		step{"nobody", "POST /posts", `{"title":"Spam"}`, 401, "", []string{"user != null"}}, // the rule: development
		step{"ann", "POST /posts", `{"text":"no title"}`, 400, "", []string{"title"}},
		step{"ann", "POST /posts", `{"title":"Hello","user":"{bob}"}`, 201, "post", nil},
		step{"bob", "GET /posts/{post}", "", 403, "", nil},
		step{"ann", "GET /users/{ann}", "", 200, "", []string{"!Hello"}},
		step{"ann", "PUT /posts/{post}", `{"published":true}`, 200, "", nil},
		step{"nobody", "GET /posts?sort=-created", "", 200, "", []string{"Hello"}},
		step{"nobody", "GET /users/{ann}", "", 200, "", []string{`"posts":[`, "Hello", "!comments", "!example.com"}},
		step{"bob", "PUT /posts/{post}", `{"title":"Mine"}`, 403, "", nil},
		step{"bob", "POST /comments", `{"post":"{post}","text":"Well said."}`, 201, "comment", nil},
		step{"nobody", "GET /posts/{post}", "", 200, "", []string{`"comments":[`, "Well said."}},
		step{"nobody", "POST /users", `{"name":"x"}`, 404, "", nil},
		step{"bob", "DELETE /users/{bob}", "", 204, "", nil},
		step{"nobody", "GET /posts/{post}", "", 200, "", []string{"!Well said."}},
		step{"ann", "DELETE /posts/{post}", "", 204, "", nil},
		step{"nobody", "GET /users/{ann}", "", 200, "", []string{"!Hello"}},
	)
}

// Who may not read a post reads no comment on it, in no way; whoever wrote a comment has it.
func TestCommentsOfADraftAreForItsReaders(t *testing.T) {
	t.Parallel()
	s := serve(t, "blog")
	s.do(
		step{"ann", "POST /posts", `{"title":"Draft"}`, 201, "post", nil},
		step{"ann", "POST /comments", `{"post":"{post}","text":"Not yet."}`, 201, "note", nil},
		step{"bob", "POST /comments", `{"post":"{post}","text":"Well said."}`, 201, "comment", nil},
		step{"ann", "GET /posts/{post}", "", 200, "", []string{"Not yet.", "Well said."}},
		step{"bob", "GET /comments", "", 200, "", []string{"Well said.", "!Not yet."}},
	)
	const comments = `/comments?filter=post+==+%22{post}%22`
	unread := func(as string) {
		t.Helper()
		denied := 403
		if as == "nobody" {
			denied = 401
		}
		list := 200
		if status, _ := s.ask(as, "GET", "/comments", ""); status != 200 {
			list = denied
		}
		s.do(
			step{as, "GET /comments/{note}", "", denied, "", []string{"!Not yet."}},
			step{as, "GET /posts/{post}", "", denied, "", []string{"!Not yet.", "!Well said."}},
			step{as, "GET /posts", "", 200, "", []string{"!Not yet.", "!Well said."}},
			step{as, "GET /comments", "", list, "", []string{"!Not yet."}},
			step{as, "GET /comments?count=exact", "", list, "", []string{"!Not yet."}},
			step{as, "GET /comments?sort=-created", "", list, "", []string{"!Not yet."}},
			step{as, "GET /users/{ann}", "", 200, "", []string{"!{post}", "!{note}"}},
			step{as, "GET /users/{bob}", "", 200, "", []string{"!Well said."}},
		)
		if _, text := s.ask(as, "GET", comments, ""); strings.Contains(text, "Not yet.") {
			t.Errorf("%s finds comments by their post: %s", as, text)
		}
	}
	readers := []string{"nobody", "eve", "bob"}
	for _, as := range readers {
		unread(as)
	}
	s.do(step{"ann", "PUT /posts/{post}", `{"published":true}`, 200, "", nil})
	for _, as := range readers {
		s.do(step{as, "GET /posts/{post}", "", 200, "", []string{"Not yet.", "Well said."}})
	}
	s.do(step{"ann", "PUT /posts/{post}", `{"published":false}`, 200, "", nil})
	for _, as := range readers {
		unread(as)
	}
}

// Who tries addresses at the login of an application that began with a template does not learn which have accounts.
func TestALoginTellsNotWhoHasAnAccount(t *testing.T) {
	t.Parallel()
	for _, template := range starter.Templates() {
		t.Run(template, func(t *testing.T) {
			t.Parallel()
			s := serve(t, template)
			status, known := s.ask("nobody", "POST", "/auth/email",
				`{"login":"ann@example.com","password":"another password"}`)
			if other, unknown := s.ask("nobody", "POST", "/auth/email",
				`{"login":"zoe@example.com","password":"another password"}`); other != status ||
				problemOf(unknown) != problemOf(known) {
				t.Errorf("%d %s, and %d %s", status, known, other, unknown)
			}
		})
	}
}

// problemOf returns a problem without what differs from one request to the next.
func problemOf(text string) string {
	var problem map[string]any
	if json.Unmarshal([]byte(text), &problem) != nil {
		return text
	}
	delete(problem, "instance")
	return fmt.Sprint(problem)
}

func TestListsOfThingsToDoAreTheirOwners(t *testing.T) {
	t.Parallel()
	serve(t, "todo").do(
		step{"ann", "POST /lists", `{"title":"Garden"}`, 201, "list", nil},
		step{"ann", "POST /todos", `{"list":"{list}","text":"Water","done":false,"due":"2026-12-24"}`, 201, "todo",
			nil},
		step{"eve", "POST /todos", `{"list":"{list}","text":"Dig holes","done":false}`, 201, "other", nil},
		step{"ann", "GET /lists/{list}", "", 200, "", []string{"Water", "!Dig holes"}},
		step{"eve", "GET /lists/{list}", "", 403, "", nil},
		step{"eve", "GET /lists", "", 200, "", []string{"!Garden"}},
		step{"eve", "GET /todos", "", 200, "", []string{"!Water", "Dig holes"}},
		step{"eve", "GET /users/{ann}", "", 403, "", nil},
		step{"ann", "POST /todos", `{"list":"{list}","text":"Rake","done":false,"due":"2026-13-01"}`, 400, "",
			[]string{"due"}},
		step{"ann", "POST /todos", `{"list":"{list}","text":"Sow"}`, 400, "", []string{"done"}},
		step{"ann", "GET /todos?filter=list+==+%22{list}%22+%26%26+done+==+false", "", 200, "", []string{"Water"}},
		step{"ann", "PUT /todos/{todo}", `{"done":true}`, 200, "", nil},
		step{"ann", "GET /lists/{list}", "", 200, "", []string{`"done":true`}},
		step{"ann", "GET /todos?filter=list+==+%22{list}%22+%26%26+done+==+true", "", 200, "", []string{"Water"}},
		step{"ann", "GET /todos?sort=due", "", 200, "", []string{"Water"}},
		step{"ann", "GET /auth/me", "", 200, "", []string{"Garden"}},
		step{"ann", "DELETE /lists/{list}", "", 204, "", nil},
		step{"ann", "GET /todos/{todo}", "", 404, "", nil},
		step{"eve", "GET /todos/{other}", "", 200, "", nil},
		step{"ann", "POST /lists", `{"title":"Kitchen"}`, 201, "kitchen", nil},
		step{"ann", "DELETE /users/{ann}", "", 204, "", nil},
	)
}

func TestMessagesAreForWhoIsInTheRoom(t *testing.T) {
	t.Parallel()
	serve(t, "chat").do(
		step{"ann", "POST /rooms", `{"name":"Bell ringers"}`, 201, "room", nil},
		step{"ann", "GET /rooms/{room}", "", 200, "", nil},
		step{"bob", "GET /rooms/{room}", "", 403, "", nil},
		step{"bob", "POST /messages", `{"room":"{room}","text":"Hello?"}`, 403, "", nil},
		step{"eve", "POST /members", `{"room":"{room}","member":"{eve}"}`, 403, "", nil},
		step{"ann", "POST /members", `{"room":"{room}","member":"{ann}","accepted":true}`, 201, "", nil},
		// nobody is put into a room
		step{"ann", "POST /members", `{"room":"{room}","member":"{bob}","accepted":true}`, 403, "",
			[]string{"accepted"}},
		step{"ann", "POST /members", `{"room":"{room}","member":"{bob}"}`, 201, "bobs", nil},
		step{"ann", "PUT /members/{bobs}", `{"accepted":true}`, 403, "", nil},
		step{"eve", "GET /members", "", 200, "", []string{"!{bobs}"}},
		step{"bob", "GET /rooms/{room}", "", 403, "", nil},
		step{"bob", "GET /members", "", 200, "", []string{`"room":"`, "!accepted"}},
		step{"bob", "POST /rooms", `{"name":"Bob's"}`, 201, "other", nil},
		step{"bob", "PUT /members/{bobs}", `{"accepted":true,"room":"{other}"}`, 403, "", []string{"room"}},
		step{"bob", "PUT /members/{bobs}", `{"accepted":true,"member":"{eve}"}`, 403, "", []string{"member"}},
		step{"bob", "PUT /members/{bobs}", `{"accepted":true}`, 200, "", nil},
		step{"bob", "POST /messages", `{"room":"{room}","text":"Hello!","pinned":true}`, 201, "message", nil},
		step{"ann", "GET /messages?filter=room+==+%22{room}%22&sort=-created", "", 200, "", []string{"Hello!"}},
		step{"bob", "GET /rooms/{room}", "", 200, "", []string{"Hello!", `"members":[`}},
		step{"bob", "GET /rooms", "", 200, "", []string{"Bell ringers"}},
		step{"eve", "GET /rooms", "", 200, "", []string{"!Bell ringers"}},
		step{"eve", "GET /messages/{message}", "", 403, "", nil},
		step{"eve", "GET /messages?filter=room+==+%22{room}%22", "", 200, "", []string{"!Hello!"}},
		step{"eve", "PUT /users/{eve}", `{"rooms":[{"uuid":"x","room":"{room}"}],"ownRooms":[{"uuid":"{room}"}]}`, 200,
			"", nil},
		step{"eve", "GET /messages/{message}", "", 403, "", nil},
		step{"ann", "GET /users/{bob}", "", 200, "", []string{"bob", "!rooms", "!example.com"}},
		step{"ann", "PUT /messages/{message}", `{"text":"Forged"}`, 403, "", nil},
		step{"bob", "DELETE /members/{bobs}", "", 204, "", nil},
		step{"bob", "GET /messages/{message}", "", 403, "", nil},
		step{"ann", "DELETE /rooms/{room}", "", 204, "", nil},
		step{"bob", "GET /messages/{message}", "", 404, "", nil},
	)
}

func TestARecipeSiteKeepsNamesAndNumbers(t *testing.T) {
	t.Parallel()
	s := serve(t, "recipes")
	s.do(
		step{"nobody", "POST /recipes", `{"title":"Spam"}`, 401, "", []string{"user != null"}},
		step{"ann", "POST /recipes", `{"steps":"no title"}`, 400, "", []string{"title"}},
		step{"ann", "POST /recipes", `{"title":"Soup","user":"{bob}","author":"Bob"}`, 201, "soup",
			[]string{`"author":"ann"`, `"user":"{ann}"`, `"ratings":0`, `"comments_count":0`, "!average"}},
		step{"bob", "GET /recipes/{soup}", "", 403, "", nil},
		step{"bob", "GET /users/{ann}", "", 403, "", nil},
		// drafts take no comments, and who may not get one can't name it
		step{"ann", "POST /comments", `{"recipe":"{soup}","text":"Early"}`, 403, "", []string{"linked.recipe"}},
		step{"bob", "POST /ratings", `{"recipe":"{soup}","stars":1}`, 400, "", []string{"recipe"}},
		step{"bob", "POST /comments", `{"text":"On nothing"}`, 400, "", nil},

		step{"ann", "PUT /recipes/{soup}", `{"published":true}`, 200, "", nil},
		step{"bob", "POST /comments", `{"recipe":"{soup}","text":"Great!"}`, 201, "great",
			[]string{`"author":"bob"`, `"published":true`}},
		step{"eve", "POST /comments", `{"recipe":"{soup}","text":"Thin."}`, 201, "thin", nil},
		step{"bob", "POST /ratings", `{"recipe":"{soup}","stars":6}`, 400, "", []string{"stars"}},
		step{"bob", "POST /ratings", `{"recipe":"{soup}","stars":5}`, 201, "five", nil},
		step{"bob", "POST /ratings", `{"recipe":"{soup}","stars":4}`, 409, "", []string{"recipe"}},
		step{"eve", "POST /ratings", `{"recipe":"{soup}","stars":4}`, 201, "four", nil},
		step{"nobody", "GET /recipes/{soup}", "", 200, "", []string{
			`"author":"ann"`, `"average":4.5`, `"best":5`, `"comments_count":2`, `"ratings":2`, `"stars":9`, `"last":"2`,
			`{"uuid":"{great}","author":"bob","text":"Great!"}`, "!example.com",
		}},
		step{"nobody", "GET /recipes?sort=-average", "", 200, "", []string{"Soup"}},
		step{"nobody", "GET /recipes?filter=author+==+%22ann%22", "", 200, "", []string{"Soup"}},
		step{"nobody", "GET /comments?filter=recipe+==+%22{soup}%22&sort=-created", "", 200, "",
			[]string{"Great!", "Thin."}},
		step{"eve", "GET /ratings?filter=recipe+==+%22{soup}%22", "", 200, "", []string{`"stars":4`, `!"stars":5`}},
		step{"nobody", "GET /ratings/{five}", "", 401, "", nil},
		step{"bob", "PUT /comments/{great}", `{"recipe":"{bob}"}`, 403, "", []string{"recipe"}},
		step{"eve", "PUT /comments/{great}", `{"text":"Mine"}`, 403, "", nil},

		// a new name is in each recipe, in each comment, and from there in the recipe of the comment
		step{"bob", "PUT /users/{bob}", `{"name":"Robert"}`, 200, "", nil},
		step{"nobody", "GET /comments/{great}", "", 200, "", []string{`"author":"Robert"`}},
		step{"ann", "PUT /users/{ann}", `{"name":"Annette"}`, 200, "", nil},
		step{"nobody", "GET /recipes/{soup}", "", 200, "", []string{`"author":"Annette"`}},
	)
	s.until(step{"nobody", "GET /recipes/{soup}", "", 200, "", []string{`"author":"Robert","text":"Great!"}`}})

	// what is withdrawn takes its comments along, but from those who wrote them
	s.do(step{"ann", "PUT /recipes/{soup}", `{"published":false}`, 200, "", nil},
		step{"nobody", "GET /recipes", "", 200, "", []string{"!Soup", "!Great!"}},
		step{"nobody", "GET /comments/{great}", "", 401, "", nil},
		step{"eve", "GET /comments", "", 200, "", []string{"!Great!", "Thin."}},
		step{"eve", "POST /comments", `{"recipe":"{soup}","text":"Still thin."}`, 400, "", nil},
		step{"ann", "PUT /recipes/{soup}", `{"published":true}`, 200, "", nil},

		step{"eve", "DELETE /users/{eve}", "", 204, "", nil})
	s.until(step{"nobody", "GET /recipes/{soup}", "", 200, "", []string{"!Thin.", `"ratings":1`, `"comments_count":1`}})
	s.do(step{"ann", "DELETE /recipes/{soup}", "", 204, "", nil},
		step{"bob", "GET /comments/{great}", "", 404, "", nil},
		step{"bob", "GET /ratings/{five}", "", 404, "", nil})
}
