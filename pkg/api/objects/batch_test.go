package objects_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/test/model"
)

type batchResult struct {
	Status  int
	Headers map[string]string
	Body    struct {
		UUID, Title, Detail, Type string
		Year                      int
		Chapters                  []any
	}
}

// batch sends a batch and returns its results. An operation is its method, path and, if any, its further members.
func batch(f *apitest.Front, operations []string, headers ...string) (apitest.Reply, []batchResult) {
	f.Helper()
	var all []string
	for _, o := range operations {
		method, rest, _ := strings.Cut(o, " ")
		path, members, _ := strings.Cut(rest, " ")
		if members != "" {
			members = "," + members
		}
		all = append(all, fmt.Sprintf(`{"method":%q,"path":%q%s}`, method, path, members))
	}
	r := f.Do("POST", "/batch", `{"operations":[`+strings.Join(all, ",")+`]}`,
		headers...).Want(200).HasHeader("Content-Type", "application/json").HasHeader("Cache-Control", "no-store")
	var reply struct{ Results []batchResult }
	r.JSON(&reply)
	if len(reply.Results) != len(operations) {
		f.Fatalf("%d results of %d operations: %s", len(reply.Results), len(operations), r.Text)
	}
	return r, reply.Results
}

// statuses checks those of results.
func statuses(f *apitest.Front, results []batchResult, want ...int) {
	f.Helper()
	var got []int
	for _, r := range results {
		got = append(got, r.Status)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		f.Errorf("statuses %v, want %v: %+v", got, want, results)
	}
}

func TestABatchAnswersEachOperationInOrder(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	tag := f.Create("emma")
	_, got := batch(f, []string{
		`POST /books "body":{"uuid":"kim","title":"Kim","secret":"x"}`,
		`POST /books "body":{"uuid":"kim"}`,
		`PATCH /books/kim "body":{"year":1901}`,
		`PUT /books/emma "headers":{"if-match":"\"1\""},"body":{"year":1}`,
		`PUT /books/emma "headers":{"If-Match":` + string(object.AppendString(nil, tag)) + `},"body":{"year":1815}`,
		`GET /books/%65mma`,
		`POST /authors "body":{"uuid":"ada"}`,
		`DELETE /books/kim`,
		`GET /books/kim`,
		`GET /books/emma "headers":{"If-None-Match":"*"}`,
	})
	statuses(f, got, 201, 409, 200, 412, 200, 200, 201, 204, 404, 304)
	if got[0].Headers["Location"] != "/books/kim" || got[0].Headers["ETag"] == "" || got[2].Body.Title != "Kim" ||
		got[2].Body.Year != 1901 || got[5].Body.Year != 1815 || got[5].Headers["ETag"] != got[4].Headers["ETag"] {
		t.Errorf("%+v", got)
	}
	if got[1].Body.Type != "urn:belfry:problem:exists" || got[1].Headers != nil {
		t.Errorf("no problem: %+v", got[1])
	}
}

func TestABatchRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t, func(o *api.Options) {
		drafts, err := store.Open(t.Context(), model.NewMemory(), store.Options{Name: "Drafts"})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Expose(o, drafts, config.Expose{URL: "/drafts", Restrict: config.Restrict{Delete: true, Get: true}})
	})
	f.Create("emma")
	_, got := batch(f, []string{
		`GET /books`, `DELETE /books`, `POST /books/emma "body":{}`, `GET /nothing/emma`, `GET /books/emma?x=1`,
		`GET /books/emma/x`, `GET /books/`, `GET /books/%zz`, `GET /books/%2e`,
		`HEAD /books/emma`, `GET /drafts/emma`, `DELETE /drafts/emma`, `GET /books/emma "body":{}`, `PUT /books/emma`,
		`PUT /books/emma "body":[]`,
		`PUT /books/emma "body":{},"headers":{"Prefer":"wait=5"}`, `PUT /books/emma "body":{},"headers":{"If-Match":7}`,
		`PUT /books/emma "body":{},"header":{}`,
		`POST /books "body":{},"headers":{"If-Match":"*"}`, `POST /batch "body":{}`, `POST /auth/email "body":{}`,
	})
	statuses(f, got, 405, 405, 405, 404, 400, 404, 404, 400, 400, 405, 405, 405, 400, 400, 400, 400, 400, 400, 400, 404,
		404)
	for _, one := range []string{`{}`, `{"path":"/books/emma"}`, `{"method":"GET"}`, `{"method":"","path":""}`} {
		if r := f.Do("POST", "/batch", `{"operations":[`+one+`]}`).Want(200); !strings.Contains(r.Text,
			`{"status":400,`) || !strings.Contains(r.Text, "must have a method and a path") {
			t.Errorf("%s: %s", one, r.Text)
		}
	}
	for body, says := range map[string]string{
		`{"operations":[{"method":"DELETE","path":"/books/emma"}],"atomic":true}`:   "one object",
		`{"operations":[{"method":"DELETE","path":"/books/emma"}],"atomic":1}`:      "false",
		`{"operations":[{"method":"DELETE","path":"/books/emma"}],"parallel":true}`: "unknown",
		`{"operations":[]}`: "1 to 100", `{}`: "1 to 100", `{"operations":{}}`: "1 to 100",
		`{"operations":[` + strings.Repeat(`{"method":"DELETE","path":"/books/emma"},`, 100) + `{}]}`: "1 to 100",
	} {
		f.Do("POST", "/batch", body).Want(400).Says(says)
	}
	const one = `{"operations":[{"method":"DELETE","path":"/books/emma"}],"atomic":false}`
	f.Do("POST", "/batch", one, keyHeader, "k").Want(400).Says("each operation")
	f.Do("POST", "/batch", one, "If-Match", "*").Want(400).Says("each operation")
	f.Do("POST", "/batch", one, "Content-Type", "text/plain", "Sec-Fetch-Site", "cross-site").Want(403)
	f.Do("GET", "/batch", "").Want(405)
	f.Do("GET", "/books/emma", "").Want(200)
	f.Do("POST", "/batch", one).Want(200)
	f.Do("GET", "/books/emma", "").Want(404)
}

func TestABatchHasAKeyForEachOperation(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	operations := []string{
		`POST /books "headers":{"Idempotency-Key":"a"},"body":{"title":"t"}`,
		`POST /books "headers":{"Idempotency-Key":"b"},"body":{"title":"t"}`,
		`PUT /books/none "headers":{"Idempotency-Key":"c"},"body":{}`,
	}
	_, first := batch(f, operations)
	operations = append(operations, `POST /books "body":{"title":"t"}`)
	_, again := batch(f, operations)
	statuses(f, again, 201, 201, 404, 201)
	for i := range 2 {
		if first[i].Body.UUID != again[i].Body.UUID || again[i].Headers[replayed] != "true" ||
			first[i].Headers[replayed] != "" {
			t.Errorf("%+v, then %+v", first[i], again[i])
		}
	}
	if first[0].Body.UUID == first[1].Body.UUID || again[3].Headers[replayed] != "" {
		t.Errorf("%+v", again)
	}
}

func TestABatchWaitsOnce(t *testing.T) {
	t.Parallel()
	w := &apitest.Waiter{}
	f := apitest.Start(t, w.Use)
	f.Create("emma")
	waits := 0
	w.Work = func(ctx context.Context, causes []store.Cause) error {
		if waits++; len(causes) != 2 {
			t.Errorf("%d causes, want 2", len(causes))
		}
		return apitest.Map(f)(ctx, causes)
	}
	r, got := batch(f, []string{`PUT /books/emma "body":{"year":1}`, `GET /books/emma`,
		`POST /books "body":{"uuid":"kim"}`, `POST /books "body":{"uuid":"kim"}`}, "Prefer", "wait=5")
	r.HasHeader("Preference-Applied", "wait")
	statuses(f, got, 200, 200, 201, 409)
	if waits != 1 || len(got[0].Body.Chapters) != 1 || len(got[1].Body.Chapters) != 0 {
		t.Errorf("%d waits: %+v", waits, got)
	}
}

// Each operation counts for the limits as a request does.
func TestTheOperationsOfABatchCountForLimits(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t, func(o *api.Options) {
		o.Limits = httpkit.NewLimits(config.RequestLimits{Address: config.Rates{Reads: 1, Writes: 1}, Loopback: true},
			nil, prometheus.NewRegistry())
	})
	var operations []string
	for range 100 {
		operations = append(operations, `POST /books "body":{}`)
	}
	r, got := batch(f, operations)
	made := 0
	for _, one := range got {
		switch one.Status {
		case 201:
			made++
		case 429:
			if one.Headers["Retry-After"] == "" {
				t.Fatalf("%+v", one)
			}
		default:
			t.Fatalf("%+v", one)
		}
	}
	if made == 0 || made > 30 {
		t.Errorf("%d of 100 operations were executed", made)
	}
	if strings.Count(r.Header.Get("Ratelimit"), "address-writes") != 1 {
		t.Errorf("RateLimit: %s", r.Header.Get("Ratelimit"))
	}
}

// The policy is asked for each operation, and what one evaluation costs is not taken from the others.
func TestTheOperationsOfABatchAreAuthorized(t *testing.T) {
	t.Parallel()
	f, notes := startNotes(t,
		policy.Rules{Get: "object.l.all(a, !(2 in object.l))", Update: "has(object.open)", Delete: "has(object.open)"})
	save(f, notes, "closed", `{"l":[]}`)
	costly := `{"open":true,"l":[` + strings.TrimSuffix(strings.Repeat("1,", 900), ",") + `]}`
	var operations []string
	for i := range 12 {
		save(f, notes, fmt.Sprint("n", i), costly)
		operations = append(operations, fmt.Sprintf("GET /notes/n%d", i))
	}
	_, got := batch(f,
		append(operations, "DELETE /notes/closed", `PUT /notes/closed "body":{"open":true}`, "DELETE /notes/n0"))
	statuses(f, got, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 401, 401, 204)
}

func TestTheRuleOfAnAPIKeyHoldsForTheOperationsOfABatch(t *testing.T) {
	t.Parallel()
	f := apitest.StartLogin(t, 1)[0]
	session := f.Register("ada@example.com", "a fine password")
	r := f.Do("POST", "/auth/keys",
		`{"name":"k","password":"a fine password","rule":"method == 'POST' && !path.startsWith('/authors')"}`,
		"Authorization", "Bearer "+session).Want(201)
	var key struct{ Token string }
	f.Must(json.Unmarshal([]byte(r.Text), &key))
	f.Create("emma")
	_, got := batch(f,
		[]string{`DELETE /books/%65mma`, `POST /authors "body":{}`, `POST /books "body":{}`, `GET /books/emma`},
		"Authorization", "Bearer "+key.Token)
	statuses(f, got, 403, 403, 201, 403)
}

// A reply has no more than a page may, and says of each operation what it led to.
func TestTheReplyToABatchIsBounded(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	for i := range 20 {
		o := object.Object{"text": []byte(`"` + strings.Repeat("x", 250_000) + `"`)}
		_, err := f.Books.Save(t.Context(), o, fmt.Sprint("b", i))
		f.Must(err)
	}
	var operations []string
	for i := range 20 {
		operations = append(operations, fmt.Sprintf(`GET /books/b%d`, i))
	}
	for i := range 20 {
		operations = append(operations, fmt.Sprintf(`PUT /books/b%d "body":{"year":1}`, i))
	}
	r, got := batch(f, operations)
	if len(r.Text) > store.MaxPageBytes+1<<20 {
		t.Errorf("a reply of %d bytes", len(r.Text))
	}
	if got[0].Status != 200 || got[19].Status != 413 || got[39].Status != 200 || got[39].Body.UUID != "b19" ||
		got[39].Headers["ETag"] == "" {
		t.Errorf("%+v", got)
	}
}
