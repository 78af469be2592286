package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"belfry/internal/ordered"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/apidoc/asyncapi"
	"belfry/pkg/apidoc/openapi"
	"belfry/pkg/apimodel"
	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/natsapi"
	"belfry/pkg/op"
	"belfry/pkg/store"
	limit "belfry/test/kit"
)

type bell struct {
	op.Input
	Tone   string `form:"tone,required" doc:"Which one is rung."`
	Softly bool   `form:"softly" doc:"With a cloth."`
}

// ring is the work of the operation that only this test has.
func ring(tone string) (string, error) {
	if tone == "" {
		return "", errs.New(errs.Invalid, "expected a tone")
	}
	return "rung " + tone, nil
}

// addBell adds the operation over HTTP and, for a store, over the bus.
func addBell(set *op.Set) {
	set.Tag("Bells", "Of a test.")
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/bells", ID: "ringBell", Summary: "Ring a bell", Body: op.Form[bell](),
		Replies: ordered.Of("200", op.Reply("It is rung.", op.JSON(op.Object("", 1, "rung", op.Text("")))), "303",
			op.Redirect("Of an HTML form.")),
		Problems: []int{400}, Limit: httpkit.Write,
		Run: op.Fields(op.IsHTML, func(_ *httpkit.Exchange, in bell) (op.Outcome, error) {
			text, err := ring(in.Tone)
			if in.Softly {
				text += " softly"
			}
			return op.Outcome{Body: map[string]string{"rung": text}, To: "/after"}, err
		}, func(x *httpkit.Exchange, html bool, o op.Outcome, err error) error {
			if err != nil {
				return err
			}
			return o.Send(x, html)
		}),
	})
	set.AddRequest(op.Request{
		Store: &apimodel.Store{Name: "Books", ID: "Books"}, Op: "ring", Summary: "Ring a bell.",
		Payload: op.Payload("", 1, "tone", op.Text("Which one is rung.")),
		Reply:   op.Payload("", 1, "rung", op.Text("")), Run: func(_ context.Context, in *op.Asked) ([]byte, error) {
			tone, _ := in.Body.Text("tone")
			text, err := ring(tone)
			return fmt.Appendf(nil, `{"rung":%q}`, text), err
		},
	})
}

// An operation that is added is a route, a form and a request over the bus, and both documents have it, without another
// line.
func TestAnAddedOperationIsServedAndDescribed(t *testing.T) {
	api.AddDomain(t, addBell)
	f := apitest.Start(t)
	if !slices.Contains(f.API.Routes(), "POST /bells") {
		t.Errorf("it has no route: %v", f.API.Routes())
	}
	if r := f.Do("POST", "/bells", `{"tone":"c","softly":true}`).Want(200); strings.TrimSpace(
		r.Text) != `{"rung":"rung c softly"}` {
		t.Errorf("the reply is %s", r.Text)
	}
	f.Do("POST", "/bells", `{}`).Want(400)
	f.Do("POST", "/bells", `{"tone":7}`).Want(400).Says("a field has the wrong type")
	f.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	f.Do("POST", "/bells", "tone=c", "Content-Type", "", "Content-Type",
		httpkit.HTMLForm).Want(303).HasHeader("Location", "/after")
	f.Do("GET", "/bells", "").Want(405)

	text, err := openapi.Document(f.API.Operations())
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
			RequestBody struct {
				Content map[string]struct {
					Schema struct {
						Required   []string
						Properties map[string]any
					}
				}
			}
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	described := document.Paths["/bells"]["post"]
	for _, body := range []string{op.JSONType, op.FormType} {
		if s := described.RequestBody.Content[body].Schema; !slices.Equal(s.Required, []string{"tone"}) ||
			len(s.Properties) != 2 {
			t.Errorf("%s is %+v", body, s)
		}
	}
	if described.OperationID != "ringBell" {
		t.Errorf("OpenAPI has %+v", described)
	}
	set := op.NewSet(&apimodel.Contract{Stores: []*apimodel.Store{{Name: "Books", ID: "Books"}}})
	addBell(set)
	text, err = asyncapi.Document(set)
	if err != nil || !strings.Contains(string(text), `"ringBooksRequest"`) ||
		!strings.Contains(string(text), `"address": "store.Books.ring"`) {
		t.Errorf("AsyncAPI does not have it: %v", err)
	}

	b, err := bus.Open(t.Context(), bus.Options{
		Server: embedded.New(embedded.Options{Folder: t.TempDir(), Listen: "127.0.0.1:0"}),
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	s, err := natsapi.Start(natsapi.Options{Conn: b.Conn(), Set: f.API.Operations(), Stores: []*store.Store{f.Books},
		Requests: f.Requests, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	for body, want := range map[string]string{
		`{"tone":"c"}`: `{"rung":"rung c"}`, `{}`: "is missing: ring needs it",
		`{"tone":"c","louder":true}`: "is unknown; ring takes tone", `{"tone":""}`: "expected a tone",
	} {
		reply, err := b.Conn().Request("store.Books.ring", []byte(body), limit.Limit)
		if err != nil || !strings.Contains(string(reply.Data), want) {
			t.Errorf("%s: %s, %v, want %s", body, reply.Data, err, want)
		}
	}
}

// Nothing is served below the API but what the set has: the rest are pages, and what is mounted for operators.
func TestEveryRouteIsAnOperation(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	known := map[string]bool{}
	for _, o := range f.API.Operations().Operations() {
		known[o.Method+" "+o.Path] = true
	}
	n := 0
	for _, route := range f.API.Routes() {
		n++
		if !known[route] {
			t.Errorf("%s is served, and no operation", route)
		}
		delete(known, route)
	}
	for route := range known {
		if !strings.HasPrefix(route, "HEAD ") {
			t.Errorf("%s is an operation, and not served", route)
		}
	}
	if n < 30 {
		t.Errorf("there are %d routes", n)
	}
}
