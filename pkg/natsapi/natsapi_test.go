package natsapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"belfry/pkg/bus"
	"belfry/pkg/natsapi"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/schema"
	"belfry/pkg/wire"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

func TestOperations(t *testing.T) {
	w := open(t)
	saved := w.want("", wire.Save, `{"object":{"uuid":"emma","title":"Emma <1>","year":1815}}`)
	if saved.reply.Revision == 0 || !strings.Contains(saved.body, `"title":"Emma <1>"`) ||
		w.outbox.last().Origin != "bus" {
		t.Errorf("%s, %+v", saved.body, w.outbox.last())
	}
	updated := w.want("", wire.Update,
		fmt.Sprintf(`{"uuid":"emma","object":{"year":1816},"revision":%d}`, saved.reply.Revision))
	if !strings.Contains(updated.body, `"year":1816`) || !strings.Contains(updated.body, "Emma") {
		t.Error(updated.body)
	}
	w.want("412", wire.Update, fmt.Sprintf(`{"uuid":"emma","object":{"year":1},"revision":%d}`, saved.reply.Revision))
	w.want("", wire.Update, `{"object":{"uuid":"emma","year":1817}}`)
	if got := w.want("", wire.Get, `{"uuid":"emma"}`); !strings.Contains(got.body, `"year":1817`) {
		t.Error(got.body)
	}
	if got := w.want("", wire.Exists, `{"uuid":"emma"}`); got.body != `{"exists":true}` {
		t.Error(got.body)
	}
	w.want("409", wire.Save, `{"object":{"title":"another"},"uuid":"emma"}`)
	w.want("412", wire.Delete, `{"uuid":"emma","revision":7}`)
	if got := w.want("", wire.Delete, `{"uuid":"emma"}`); got.body != "{}" {
		t.Error(got.body)
	}
	if got := w.want("", wire.Exists, `{"uuid":"emma"}`); got.body != `{"exists":false}` {
		t.Error(got.body)
	}
	w.want("404", wire.Get, `{"uuid":"emma"}`)
	w.want("404", wire.Delete, `{"uuid":"emma"}`)
	if got := w.outbox.of("emma"); got != "Saved Updated Updated Deleted" {
		t.Error(got)
	}
}

// Events have revisions as strings, and replies as numbers: a program passes on what it has.
func TestARevisionIsANumberOrItsDigits(t *testing.T) {
	w := open(t)
	saved := w.want("", wire.Save, `{"object":{"uuid":"emma","year":1815}}`)
	envelope, err := json.Marshal(w.outbox.last())
	w.must(err)
	var sent struct{ Revision string }
	w.must(json.Unmarshal(envelope, &sent))
	if sent.Revision != fmt.Sprint(saved.reply.Revision) {
		t.Fatalf("the event has revision %q", sent.Revision)
	}
	w.want("412", wire.Update,
		fmt.Sprintf(`{"uuid":"emma","object":{"year":1},"revision":"%d"}`, saved.reply.Revision-1))
	w.want("412", wire.Delete, fmt.Sprintf(`{"uuid":"emma","revision":"%d"}`, saved.reply.Revision-1))
	first := w.want("", wire.Update, `{"uuid":"emma","object":{"year":1816},"revision":"`+sent.Revision+`"}`,
		key("k")...)
	again := w.want("", wire.Update, `{"uuid":"emma","object":{"year":1816},"revision":`+sent.Revision+`}`, key("k")...)
	if first.body != again.body {
		t.Errorf("the same request in other words: %s, then %s", first.body, again.body)
	}
	w.want("", wire.Delete, fmt.Sprintf(`{"uuid":"emma","revision":"%d"}`, first.reply.Revision))

	w.want("", wire.Save, `{"object":{"uuid":"kim"}}`)
	for _, wrong := range []string{`"0"`, `""`, `"01"`, `"+1"`, `"-1"`, `" 1"`, `"1.0"`, `"1e3"`, `"0x1"`, `"1_000"`,
		`"\"1\""`, `"one"`, `1.5`, `1e3`, `-1`, `true`, `null`, `[1]`, `{}`} {
		for op, body := range map[string]string{wire.Update: `{"uuid":"kim","object":{},"revision":` + wrong + `}`,
			wire.Delete: `{"uuid":"kim","revision":` + wrong + `}`} {
			if got := w.want("400", op, body); !strings.Contains(got.body, "string of its decimal digits") ||
				!strings.Contains(got.body, `"pointer":"/revision"`) {
				t.Errorf("%s: %s", wrong, got.body)
			}
		}
	}
	for _, large := range []string{`18446744073709551616`, `"18446744073709551616"`} {
		if got := w.want("400", wire.Delete, `{"uuid":"kim","revision":`+large+`}`); !strings.Contains(got.body,
			"larger than any revision") {
			t.Errorf("%s: %s", large, got.body)
		}
	}
}

func TestLists(t *testing.T) {
	w := open(t)
	if got := w.want("", wire.List, `{}`); got.body != `{"objects":[]}` {
		t.Error(got.body)
	}
	for i := range 5 {
		w.want("", wire.Save, fmt.Sprintf(`{"object":{"uuid":"b%d","year":%d,"_x":1}}`, i, 1800+i))
	}
	first := w.want("", wire.List, `{"filter":"year > 1800","sort":"-year","limit":3}`)
	second := w.want("", wire.List,
		`{"filter":"year > 1800","sort":"-year","limit":3,"cursor":`+quoted(first.reply.Cursor)+`}`)
	var uuids []string
	for _, o := range append(first.reply.Objects, second.reply.Objects...) {
		uuid, _ := object.Text(object.Field(o, "uuid"))
		uuids = append(uuids, uuid)
	}
	if got := strings.Join(uuids, " "); got != "b4 b3 b2 b1" || second.reply.Cursor != "" {
		t.Errorf("%s, then %q", got, second.reply.Cursor)
	}
	w.want("400", wire.List, `{"filter":"title == \"x\""}`)

	back := w.want("",
		wire.List, `{"filter":"year > 1800","sort":"-year","limit":3,"fields":"year","count":"exact","explain":true,"before":`+quoted(second.reply.Before)+`}`)
	if len(back.reply.Objects) != 3 || string(back.reply.Objects[0]) != `{"uuid":"b4","year":1804}` ||
		back.reply.Before != "" || back.reply.Cursor == "" {
		t.Errorf("the page before: %s", back.body)
	}
	if back.reply.Count == nil || *back.reply.Count != (wire.Count{Value: 4, Accuracy: "exact"}) ||
		!strings.Contains(string(back.reply.Plan), `"range":["year > 1800"]`) {
		t.Errorf("its count and its plan: %s", back.body)
	}
	if got := w.want("", wire.Get, `{"uuid":"b1","fields":"year"}`); string(
		got.reply.Object) != `{"uuid":"b1","year":1801}` || got.reply.Revision == 0 {
		t.Error(got.body)
	}
	w.want("400", wire.Get, `{"uuid":"b1","fields":"a.b.c"}`)
	w.want("400", wire.List, `{"count":"all"}`)
	w.want("400", wire.List, `{"explain":1}`)
	w.want("400", wire.Get, `{"uuid":"b1","count":"exact"}`)
}

func quoted(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}

func TestInvalidRequestsAreRejected(t *testing.T) {
	w := open(t)
	w.want("", wire.Save, `{"object":{"uuid":"emma","title":"Emma"}}`)
	deep := strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70)
	long := strings.Repeat("k", 201)
	for name, c := range map[string]struct {
		status, op, body, says string
		headers                []string
	}{
		"no JSON":  {"400", wire.Save, `title=Emma`, "malformed JSON", nil},
		"nothing":  {"400", wire.Get, ``, "empty", nil},
		"an array": {"400", wire.Save, `[]`, "an array", nil},
		"twice":    {"400", wire.Get, `{"uuid":"a","uuid":"b"}`, "duplicate", nil},
		"an unknown key": {"400", wire.Save, `{"object":{},"upsert":true}`,
			`"upsert" is unknown; save takes object, uuid`, nil},
		"a key of another op": {"400", wire.Save, `{"object":{},"revision":1}`, `"revision" is unknown`, nil},
		"too deep":            {"400", wire.Save, `{"object":` + deep + `}`, "nested more than", nil},
		"a NUL":               {"400", wire.Save, `{"object":{"title":"\u0000"}}`, "NUL", nil},
		"no object":           {"400", wire.Save, `{"uuid":"x"}`, `"object" is missing`, nil},
		"an object of text":   {"400", wire.Save, `{"object":"x"}`, "must be an object", nil},
		"a bad uuid":          {"400", wire.Get, `{"uuid":"../x"}`, "not a uuid", nil},
		"an empty uuid":       {"400", wire.Get, `{"uuid":""}`, "not a uuid", nil},
		"a uuid of numbers":   {"400", wire.Delete, `{"uuid":7}`, "must be a string", nil},
		"a bad one in it":     {"400", wire.Save, `{"object":{"uuid":7}}`, "must be a string", nil},
		"which one": {"400", wire.Update, `{"object":{"title":"x"}}`, "is missing, in the object as well",
			nil},
		"revision 0":           {"400", wire.Delete, `{"uuid":"emma","revision":0}`, "above 0", nil},
		"a revision of text":   {"400", wire.Delete, `{"uuid":"emma","revision":"one"}`, "above 0", nil},
		"a negative limit":     {"400", wire.List, `{"limit":-1}`, "above 0", nil},
		"a large limit":        {"400", wire.List, `{"limit":501}`, "1 to 500", nil},
		"a bad cursor":         {"400", wire.List, `{"cursor":"x"}`, "cursor", nil},
		"the schema":           {"400", wire.Save, `{"object":{"year":"long ago"}}`, "", nil},
		"the schema, by a key": {"400", wire.Save, `{"object":{"year":"long ago"}}`, "", key("schema")},
		"too large": {"413", wire.Save, `{"object":{"title":"` + strings.Repeat("x", 270_000) + `"}}`,
			"takes at most", nil},
		"an empty key":       {"400", wire.Save, `{"object":{}}`, "printable", key("")},
		"a long key":         {"400", wire.Save, `{"object":{}}`, "printable", key(long)},
		"a key with umlauts": {"400", wire.Save, `{"object":{}}`, "printable", key("schlüssel")},
		"two keys":           {"400", wire.Save, `{"object":{}}`, "more than once", append(key("a"), key("b")...)},
		"two keys, other cases": {"400", wire.Save, `{"object":{}}`, "more than once",
			append(key("a"), "idempotency-key", "b")},
		"a bad actor": {"400", wire.Save, `{"object":{}}`, "uuid of a user", []string{wire.HeaderActor, "a b"}},
		"not there":   {"404", wire.Update, `{"uuid":"none","object":{}}`, "no object", key("none")},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.want(c.status, c.op, c.body, c.headers...)
			var f wire.Problem
			if err := json.Unmarshal([]byte(got.body), &f); err != nil || fmt.Sprint(f.Status) != c.status ||
				f.Title == "" || !strings.HasPrefix(f.Type, "urn:belfry:problem:") {
				t.Errorf("%s, %v", got.body, err)
			}
			if !strings.Contains(got.text, c.says) || !strings.Contains(f.Detail, c.says) {
				t.Errorf("%q, %q", got.text, f.Detail)
			}
			if name == "the schema" && (len(f.Errors) != 1 || f.Errors[0].Pointer != "/object/year") {
				t.Errorf("errors are %+v", f.Errors)
			}
		})
	}
	if n, _, err := w.books.Count(t.Context()); n != 1 || err != nil {
		t.Errorf("%d books, %v", n, err)
	}
}

func TestServerOwnedFieldsAreNeitherSetNorReturned(t *testing.T) {
	w := open(t)
	for _, headers := range [][]string{nil, key("k")} {
		got := w.want("",
			wire.Save, `{"object":{"title":"t","notes":"n","copies":[1],"covers":[1],"created":"c","updated":"u","_requests":{"x":1},"_y":1}}`, headers...)
		for _, secret := range []string{"notes", "copies", "covers", `"c"`, `"u"`, "_requests", "_y"} {
			if strings.Contains(got.body, secret) {
				t.Errorf("%s in %s", secret, got.body)
			}
		}
	}
	uuid, _ := object.Text(object.Field(w.outbox.last().Object, "uuid"))
	kept, err := w.books.Get(t.Context(), uuid)
	if err != nil || !bytes.Contains(kept.Body, []byte("_requests")) {
		t.Errorf("the object holds no request: %s, %v", kept.Body, err)
	}
	before := w.want("", wire.Get, `{"uuid":"`+uuid+`"}`)
	list := w.want("", wire.List, `{}`)
	w.want("", wire.Update, `{"uuid":"`+uuid+`","object":{"title":"u","_requests":{}}}`, key("k2")...)
	e := w.outbox.last()
	for _, text := range []string{before.body, list.body, string(e.Object), string(e.Previous.Encode())} {
		if strings.Contains(text, "_requests") {
			t.Errorf("an internal field is published: %s", text)
		}
	}
	kept, err = w.books.Get(t.Context(), uuid)
	if held := object.Field(kept.Body, "_requests"); err != nil || strings.Count(string(held), ":") != 2 {
		t.Errorf("the object holds %s, %v", held, err)
	}
	for _, e := range w.outbox.all {
		if e.Store != "Books" {
			t.Errorf("an event of %s", e.Store)
		}
	}
}

func TestEventsOfRequests(t *testing.T) {
	w := open(t)
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	w.want("", wire.Save, `{"object":{}}`, "belfry-actor", "ada", "traceparent", trace, "x-request-id", "r7")
	e := w.outbox.last()
	if e.Actor == nil || *e.Actor != "ada" || e.Ctx.Trace != trace || e.Ctx.Request != "r7" || e.Origin != "bus" {
		t.Errorf("%+v", e)
	}
	w.want("", wire.Save, `{"object":{}}`, "Traceparent", "nonsense", "X-Request-Id", "a b")
	if e := w.outbox.last(); e.Actor != nil || e.Ctx.Trace != "" || e.Ctx.Request == "a b" || e.Ctx.Request == "" {
		t.Errorf("%+v", e)
	}
}

func TestTooLargeReplies(t *testing.T) {
	w := open(t)
	body := `{"object":{"uuid":"%s","title":"` + strings.Repeat("x", 250_000) + `"}}`
	for i := range 5 {
		w.want("", wire.Save, fmt.Sprintf(body, fmt.Sprint("b", i)))
	}
	var listed []string
	for cursor := ""; ; {
		page := w.want("", wire.List, `{"cursor":"`+cursor+`"}`)
		if len(page.body) > bus.MaxPayload {
			t.Errorf("a page has %d bytes", len(page.body))
		}
		for _, o := range page.reply.Objects {
			listed = append(listed, string(object.Field(o, "uuid")))
		}
		if cursor = page.reply.Cursor; cursor == "" {
			break
		}
	}
	if want := []string{`"b0"`, `"b1"`, `"b2"`, `"b3"`, `"b4"`}; !slices.Equal(listed, want) {
		t.Errorf("the pages have %v, want %v", listed, want)
	}
	stored, err := w.books.Get(t.Context(), "b0")
	w.must(err)
	_, err = store.NewWorker(w.books).CompareAndSet(t.Context(), stored,
		object.Object{"copies": []byte(`["` + strings.Repeat("x", 900_000) + `"]`)})
	w.must(err)
	if got := w.want("413", wire.List, `{}`); !strings.Contains(got.text, `"b0"`) {
		t.Error(got.text)
	}
	if got := w.want("413", wire.Get, `{"uuid":"b0"}`); !strings.Contains(got.text, "HTTP") {
		t.Error(got.text)
	}
	for _, headers := range [][]string{nil, key("large"), key("large")} {
		if got := w.want("", wire.Update, `{"object":{"uuid":"b0","year":1}}`, headers...); !got.reply.ObjectOmitted ||
			got.reply.Revision == 0 || len(got.body) > 100 {
			t.Errorf("%.200s", got.body)
		}
	}
}

func TestTheMicroProtocol(t *testing.T) {
	w := open(t)
	w.want("", wire.Save, `{"object":{"uuid":"emma"}}`)
	w.want("404", wire.Get, `{"uuid":"none"}`)
	ask := func(subject string, into any) {
		t.Helper()
		m, err := natsserver.Request(w.conn, subject, nil)
		w.must(err)
		w.must(json.Unmarshal(m.Data, into))
	}
	var ping micro.Ping
	ask("$SRV.PING", &ping)
	if ping.Type != micro.PingResponseType || ping.Name != "store-Books" || ping.ID == "" || ping.Version != "0.0.0" {
		t.Errorf("%+v", ping)
	}
	var info micro.Info
	ask("$SRV.INFO.store-Books", &info)
	var subjects []string
	for _, e := range info.Endpoints {
		subjects = append(subjects, e.Subject)
	}
	if info.Type != micro.InfoResponseType || strings.Join(subjects, " ") !=
		"store.Books.save store.Books.update store.Books.delete store.Books.exists store.Books.get store.Books.list" {
		t.Errorf("%+v", info)
	}
	kit.WaitFor(w, "both requests are counted", func() bool {
		var stats micro.Stats
		ask("$SRV.STATS.store-Books."+ping.ID, &stats)
		if stats.Type != micro.StatsResponseType || len(stats.Endpoints) != 6 {
			t.Fatalf("%+v", stats)
		}
		save, get := stats.Endpoints[0], stats.Endpoints[4]
		return save.NumRequests == 1 && save.NumErrors == 0 && save.ProcessingTime > 0 &&
			save.AverageProcessingTime == save.ProcessingTime &&
			get.NumRequests == 1 && get.NumErrors == 1 && strings.HasPrefix(get.LastError, `404:`)
	})
	if _, err := natsserver.Request(w.conn, "$SRV.PING.store-Requests", nil); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("the store of requests: %v", err)
	}
	if _, err := natsserver.Request(w.conn, "store.Requests.list", []byte("{}")); !errors.Is(err,
		nats.ErrNoResponders) {
		t.Errorf("the store of requests: %v", err)
	}
}

// A server that was replaced by another one of the same connection takes nothing that is sent after it was retired: a
// request must not meet the rules of before.
func TestARetiredServerTakesNothing(t *testing.T) {
	w := newFixture(t, nil, nil)
	before := w.serve()
	stricter := w.options
	stricter.Stores = []*store.Store{
		w.books.WithOptions(func(o *store.Options) { o.Schema = mustCompile(t, `{"required":["author"]}`) })}
	w.options = stricter
	w.must(before.Retire(t.Context(), w.serve()))
	for n := range 30 {
		w.want("400", wire.Save, fmt.Sprintf(`{"object":{"uuid":"b%d","title":"x"}}`, n))
	}
	if err := before.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// One server takes over from another: each request is handled by the one before until the next begins, then by the
// next, on the subscriptions of either; those for what only the other serves are refused.
func TestAServerTakesOver(t *testing.T) {
	w := newFixture(t, nil, nil)
	before := w.serve()
	w.options.Stores = []*store.Store{
		w.books.WithOptions(func(o *store.Options) { o.Schema = mustCompile(t, `{"required":["author"]}`) })}
	w.options.Previous = before
	next := w.serve()
	for n := range 30 {
		w.want("", wire.Save, fmt.Sprintf(`{"object":{"uuid":"b%d","title":"x"}}`, n))
	}
	next.Begin()
	w.must(before.Retire(t.Context(), next))
	for n := range 30 {
		w.want("400", wire.Save, fmt.Sprintf(`{"object":{"uuid":"c%d","title":"x"}}`, n))
	}
	w.must(before.Stop(t.Context()))
	w.must(next.Retire(t.Context(), nil))
	if _, err := natsserver.Request(w.conn, "store.Books.list", []byte("{}")); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("what nobody serves: %v", err)
	}
}

// What arrives where another server has taken over, which serves nothing, is refused; but no reply goes to a subject
// that is no inbox, such as that of an event.
func TestARetiredServerRepliesToInboxesAlone(t *testing.T) {
	w := newFixture(t, nil, nil)
	before := w.serve()
	next := w.serve()
	w.must(before.Retire(t.Context(), next))
	w.must(next.Retire(t.Context(), nil))
	events, err := w.conn.SubscribeSync("Store.Saved")
	w.must(err)
	for range 10 {
		w.must(w.conn.PublishRequest("store.Books.save", "Store.Saved", []byte(`{"object":{}}`)))
		w.want("404", wire.Save, `{"object":{}}`)
	}
	w.must(w.conn.Flush())
	if n, _, err := events.Pending(); n != 0 || err != nil {
		t.Errorf("%d replies, %v", n, err)
	}
}

// A server that has started answers the next request, also of a client whose connection is older than the server's
// subscriptions.
func TestAServerThatHasStartedAnswers(t *testing.T) {
	w := newFixture(t, nil, nil)
	for range 50 {
		s, err := natsapi.Start(w.options)
		w.must(err)
		if _, err := natsserver.Request(w.conn, "store.Books.list", []byte("{}")); err != nil {
			t.Errorf("the first request: %v", err)
		}
		w.must(s.Stop(t.Context()))
	}
}

func mustCompile(t *testing.T, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile("book.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
