package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

const notes = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Users: {private: [pin]}
  Notes:
    expose: {restrict: {delete: true}}
    owner: user
    private: [grade]
    policy: {create: user != null, get: "isOwner || object.grade == 1", update: "isOwner && user.pin == input.pin"}
`

// The process that serves and, once it has stopped, its folder give the same answers, without values of private fields.
func TestAccessIsExplainedWhileServingAndStopped(t *testing.T) {
	p := newPlace(t, notes)
	a := p.start()
	for _, user := range []string{"ann", "bob"} {
		if _, err := a.Set().Store("Users").Save(t.Context(), object.Object{"pin": json.RawMessage(`"hunter2"`)},
			user); err != nil {
			t.Fatal(err)
		}
	}
	note := object.Object{"user": json.RawMessage(`"ann"`), "grade": json.RawMessage(`7531`)}
	if _, err := a.Set().Store("Notes").Save(t.Context(), note, "n"); err != nil {
		t.Fatal(err)
	}
	check := func() {
		t.Helper()
		for _, c := range []struct {
			question command.Question
			want     string // the answer as JSON, or the error's kind and a part of it
		}{
			{command.Question{User: "ann", Store: "Notes", Operation: "get", UUID: "n"},
				`{"allowed":true,"operation":"get","rule":"isOwner || object.grade == 1","isOwner":true,` +
					`"values":[{"variable":"object","field":"grade","private":true},{"variable":"object","field":"user","json":"\"ann\""},{"variable":"user","field":"uuid","json":"\"ann\""}],"parts":[{"text":"isOwner","value":"true","decides":true},{"text":"object.grade == 1","private":true}],"fields":[{"field":"created","read":{"allowed":true,"rule":"none: everyone may"}},{"field":"grade","read":{"allowed":false,"rule":"private"}},`},
			{command.Question{User: "bob", Store: "Notes", Operation: "get", UUID: "n"},
				`{"allowed":false,"operation":"get","rule":"isOwner || object.grade == 1","isOwner":false,` +
					`"values":[{"variable":"object","field":"grade","private":true},{"variable":"object","field":"user","json":"\"ann\""},{"variable":"user","field":"uuid","json":"\"bob\""}],"parts":[{"text":"isOwner","value":"false","decides":true},{"text":"object.grade == 1","decides":true,"private":true}]}`},
			{command.Question{Store: "Notes", Operation: "create", Input: []byte(`{"user":"ann"}`)},
				`{"allowed":false,"operation":"create","rule":"user != null"}`},
			{command.Question{User: "ann", Store: "Notes", Operation: "update", UUID: "n",
				Input: []byte(`{"pin":"wrong"}`)},
				`{"allowed":false,"operation":"update","rule":"isOwner \u0026\u0026 user.pin == input.pin","reason":"no such key: pin","isOwner":true,` +
					`"values":[{"variable":"input","field":"pin","json":"\"wrong\""},{"variable":"object","field":"user","json":"\"ann\""},{"variable":"user","field":"pin","private":true},{"variable":"user","field":"uuid","json":"\"ann\""}],"parts":[{"text":"isOwner","value":"true"},{"text":"user.pin == input.pin","decides":true,"private":true}]}`},
			{command.Question{User: "ann", Store: "Notes", Operation: "delete",
				UUID: "n"}, `{"allowed":false,"operation":"delete","rule":"false // the policy does not name this operation","noRoute":"the store has expose.restrict.delete"}`},
			{command.Question{Store: "Notes", Operation: "list", UUID: "n"},
				`"noRoute":"the store has no expose.list"`},
			{command.Question{Store: "Users", Operation: "get", UUID: "ann"}, `"noRoute":"the store has no expose"`},
			{command.Question{User: "ann", Store: "Notes", Operation: "get", UUID: "m"},
				`not found: Notes has no object "m"`},
			{command.Question{User: "eve", Store: "Notes", Operation: "get", UUID: "n"},
				"not found: there is no user \"eve\": expected the uuid of a user; `belfry user list` shows them"},
			{command.Question{Store: "Nothing", Operation: "get", UUID: "n"},
				`invalid: no store "Nothing" is configured; there are`},
			{command.Question{Store: "Notes", Operation: "create", Input: []byte(`[]`)}, `invalid: `},
		} {
			var got string
			answer, err := command.Access.Do(t.Context(), p.config, c.question)
			if err != nil {
				got = fmt.Sprintf("%s: %v", errs.KindOf(err), err)
			} else if text, err := json.Marshal(answer); err == nil {
				got = string(text)
			}
			if !strings.Contains(got, c.want) || strings.Contains(got, "hunter2") || strings.Contains(got, "7531") {
				t.Errorf("%+v:\n%s, want\n%s", c.question, got, c.want)
			}
		}
	}
	check()
	p.stop(a)
	check()
}

// A rule about the session is explained for the session that the question describes.
func TestAccessIsExplainedForASession(t *testing.T) {
	p := newPlace(t, strings.Replace(notes, `get: "isOwner || object.grade == 1"`,
		`get: "session.aal == 2 && now - session.authenticatedAt < duration('10m')"`, 1))
	a := p.start()
	for store, uuid := range map[string]string{"Users": "ann", "Notes": "n"} {
		if _, err := a.Set().Store(store).Save(t.Context(), object.Object{}, uuid); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		question command.Question
		want     bool
	}{
		{command.Question{}, false},
		{command.Question{User: "ann"}, false},
		{command.Question{User: "ann", AAL: 2}, true},
		{command.Question{User: "ann", AAL: 2, Age: time.Hour}, false},
	} {
		c.question.Store, c.question.Operation, c.question.UUID = "Notes", policy.Get, "n"
		answer, err := command.Access.Do(t.Context(), p.config, c.question)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(answer); answer.Allowed != c.want ||
			c.question.AAL == 2 && !strings.Contains(string(text), `{"variable":"session","field":"aal","json":"2"}`) {
			t.Errorf("%+v: %s", c.question, text)
		}
	}
}

// In development a denial says which rule denies, and elsewhere nothing more than that it does.
func TestADenialNamesTheRuleInDevelopmentAlone(t *testing.T) {
	for setting, want := range map[string]string{"": "",
		"development: true\n": `{"operation":"create","expression":"user != null","reason":"it is false"}`} {
		p := newPlace(t, setting+notes)
		a := p.start()
		var problem struct {
			Title, Detail string
			Rule          json.RawMessage
		}
		status, reply := p.do(a, "POST", "/notes", `{}`)
		if err := json.Unmarshal([]byte(reply), &problem); err != nil || status != http.StatusUnauthorized ||
			string(problem.Rule) != want || strings.Contains(problem.Detail, "user != null") {
			t.Errorf("%q: %s, %v", setting, reply, err)
		}
		// It promises nothing from a login: the rule may deny after one too.
		if problem.Title != "Not logged in" || problem.Detail != "the store's policy does not allow create without "+
			"logging in; a login helps only if its rule allows your user" {
			t.Errorf("%s: %s", problem.Title, problem.Detail)
		}
	}
}

// What is explained of fields is what a client meets: of an object those that it reads, and of a write those that it
// may set.
func TestWhatIsExplainedOfFieldsHolds(t *testing.T) {
	f := newFieldFixture(t)
	users := map[string]string{"ada": f.ada, "bob": field(f.text("bob", 200, "GET", "/auth/me", ""), "uuid"),
		"root": f.root, "nobody": ""}
	explain := func(caller string, op policy.Op, input string) *command.Answer {
		q := command.Question{User: users[caller], Store: "People", Operation: op, Input: []byte(input)}
		if op != policy.Create {
			q.UUID = f.person
		}
		answer, err := command.Access.Do(t.Context(), f.config, q)
		f.must(err)
		return answer
	}
	hiddenBy := map[string]string{}
	for caller := range users {
		var shown map[string]any
		f.must(json.Unmarshal([]byte(f.text(caller, 200, "GET", "/people/"+f.person, "")), &shown))
		for _, op := range []policy.Op{policy.Get, policy.List} {
			for _, of := range explain(caller, op, "").Fields {
				if _, reads := shown[of.Field]; of.Read == nil || of.Read.Allowed != reads {
					t.Errorf("%s by %s: %s is shown: %v, and explained: %+v", op, caller, of.Field, reads, of.Read)
				}
				if of.Read != nil && !of.Read.Allowed {
					hiddenBy[of.Field] = strings.TrimSuffix(of.Read.Rule+", "+of.Read.Reason, ", ")
				}
			}
		}
	}
	want := map[string]string{"phone": "isOwner", "diary": "isOwner", "tags": "isOwner", "photos": "isOwner",
		"salary": "user.role == 'admin'",
		"broken": "object.missing == 1, no such key: missing", "_binaries": "kept by the server"}
	for name, rule := range want {
		if !strings.HasPrefix(hiddenBy[name], rule) {
			t.Errorf("%s is hidden by %q, want %q", name, hiddenBy[name], rule)
		}
	}

	for _, caller := range []string{"bob", "nobody", "ada", "root"} { // the admin changes the rank
		for _, input := range []string{`{"team":"x"}`, `{"rank":1}`, `{"rank":2}`, `{"diary":"a guess"}`,
			`{"phone":"1"}`, `{"tags":[]}`, `{"created":"x"}`, `{"user":"x"}`, `{"photos":[]}`,
			`{"uuid":"p-` + caller + `","rank":3}`, `{"uuid":"q-` + caller + `"}`} {
			for op, method := range map[policy.Op]string{policy.Update: "PUT", policy.Create: "POST"} {
				path := map[policy.Op]string{policy.Update: "/people/" + f.person, policy.Create: "/people"}[op]
				answer := explain(caller, op, input)
				if status, text := f.ask(caller, method, path, input); answer.Granted() != (status < 300) {
					t.Errorf("%s %s by %s is explained as %+v: %d %s", method, input, caller, answer, status, text)
				}
			}
		}
	}
}
