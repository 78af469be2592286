package objects_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
)

// expandAuthors has the authors of books expanded.
func expandAuthors(o *api.Options) {
	o.Contract.Store("Books").Expand = []apimodel.Key{{Name: "author", Target: "Authors"}}
}

// The rule of an API key that does not let it get an object does not let it expand that object either.
func TestTheRuleOfAnAPIKeyHoldsForWhatIsExpanded(t *testing.T) {
	t.Parallel()
	f := apitest.StartLogin(t, 1, expandAuthors)[0]
	session := f.Register("ada@example.com", "a fine password")
	var key struct{ Token string }
	f.Do("POST", "/auth/keys",
		`{"name":"k","password":"a fine password","rule":"path.startsWith('/books') || path == '/authors/open'"}`,
		"Authorization", "Bearer "+session).Want(201).JSON(&key)
	for _, uuid := range []string{"open", "closed"} {
		f.Do("POST", "/authors", `{"uuid":"`+uuid+`"}`).Want(201)
	}
	f.Do("POST", "/books", `{"uuid":"emma","author":["closed","open"]}`).Want(201)
	f.Do("GET", "/authors/closed", "", "Authorization", "Bearer "+key.Token).Want(403)
	for _, path := range []string{"/books?", "/books/emma?"} {
		for token, want := range map[string]string{session: `"author":[{"uuid":"closed"},{"uuid":"open"}]`,
			key.Token: `"author":[{"uuid":"open"}]`} {
			r := f.Do("GET", path+"expand=author&fields=author.uuid", "", "Authorization", "Bearer "+token).Want(200)
			if !strings.Contains(r.Text, `"_expanded":{`+want+`}`) {
				t.Errorf("%s: %s, want %s", path, r.Text, want)
			}
		}
	}
}

// The reply to a write by an API key has the object only if the key's rule lets it get that.
func TestAnAPIKeyThatMayOnlyWriteReadsNothing(t *testing.T) {
	t.Parallel()
	w := &apitest.Waiter{}
	f := apitest.StartLogin(t, 1, w.Use)[0]
	w.Work = apitest.Map(f)
	session := f.Register("ada@example.com", "a fine password")
	var key struct{ Token string }
	f.Do("POST", "/auth/keys",
		`{"name":"k","password":"a fine password","rule":"method != 'GET' || path == '/books/open'"}`, "Authorization",
		"Bearer "+session).Want(201).JSON(&key)
	bearer := func(token string, more ...string) []string {
		return append([]string{"Authorization", "Bearer " + token}, more...)
	}
	for _, uuid := range []string{"open", "closed"} {
		f.Create(uuid)
	}
	for path, shown := range map[string]bool{"/books/open": true, "/books/closed": false} {
		for _, headers := range [][]string{nil, {"Prefer", "wait=5"}, {keyHeader, path}, {keyHeader, path}} {
			if r := f.Do("PUT", path, `{}`, bearer(key.Token, headers...)...).Want(200); strings.Contains(r.Text,
				"Emma") != shown {
				t.Errorf("%s with %s: %s", path, headers, r.Text)
			}
		}
		// Repeating what the user has requested shows no more.
		f.Do("PUT", path, `{"year":1}`, bearer(session, keyHeader, "of the user "+path)...).Want(200)
		if r := f.Do("PUT", path, `{"year":1}`,
			bearer(key.Token, keyHeader, "of the user "+path)...); r.StatusCode == 200 &&
			strings.Contains(r.Text, "Emma") != shown {
			t.Errorf("a repeated request for %s: %s", path, r.Text)
		}
		_, got := batch(f, []string{"PUT " + path + ` "body":{}`}, bearer(key.Token, "Prefer", "wait=5")...)
		if statuses(f, got, 200); (got[0].Body.Title != "") != shown {
			t.Errorf("%s in a batch: %+v", path, got)
		}
	}
	for body, shown := range map[string]bool{`{"uuid":"new","title":"T"}`: false, `{"title":"T"}`: false} {
		if r := f.Do("POST", "/books", body, bearer(key.Token)...).Want(201); strings.Contains(r.Text,
			"title") != shown {
			t.Errorf("%s: %s", body, r.Text)
		}
	}
}

// The rule of a key is evaluated for each operation of a batch: all together cost what the rules of a request may.
func TestTheRuleOfAnAPIKeyCostsABatchOnlySoMuch(t *testing.T) {
	t.Parallel()
	f := apitest.StartLogin(t, 1)[0]
	session := f.Register("ada@example.com", "a fine password")
	many := "[1" + strings.Repeat(",1", 199) + "]"
	var key struct{ Token string }
	f.Do("POST", "/auth/keys",
		`{"name":"k","password":"a fine password","rule":"`+many+`.all(a, `+many+`.all(b, a == b))"}`, "Authorization",
		"Bearer "+session).Want(201).JSON(&key)
	f.Create("emma")
	operations := make([]string, 100)
	for i := range operations {
		operations[i] = "GET /books/emma"
	}
	_, got := batch(f, operations, "Authorization", "Bearer "+key.Token)
	if got[0].Status != 200 || got[99].Status != 429 {
		t.Errorf("the first operation is %d, the last one %d", got[0].Status, got[99].Status)
	}
}

// What an object names is read as the objects of a list are, so a get with it counts as a list.
func TestAGetWithExpansionsCountsAsAList(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t, expandAuthors, func(o *api.Options) {
		o.Limits = httpkit.NewLimits(config.RequestLimits{Address: config.Rates{Lists: 1}, Loopback: true}, nil,
			prometheus.NewRegistry())
	})
	f.Do("POST", "/books", `{"uuid":"emma","author":"ada"}`).Want(201)
	counted := map[string]int{}
	for range 100 {
		for _, query := range []string{"", "?expand=author"} {
			counted[fmt.Sprint(query, f.Do("GET", "/books/emma"+query, "").StatusCode)]++
		}
	}
	if counted["200"] != 100 || counted["?expand=author200"] == 0 || counted["?expand=author429"] == 0 {
		t.Errorf("%v", counted)
	}
}
