package documents

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/interceptor"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

func decode(t *testing.T, body []byte) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return o
}

// connect connects to a belfry's bus.
func connect(t *testing.T, s *server) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(s.Bus, nats.Timeout(kit.Limit))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// serveInterceptor starts the interceptor of the configuration: it refuses a write with the
// status in the field refuse, and allows everything else.
func serveInterceptor(t *testing.T, conn *nats.Conn) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- interceptor.Serve(ctx,
			conn, interceptor.Spec{Name: "check",
				Handler: func(_ context.Context, q interceptor.Request) interceptor.Response {
					var o struct{ Refuse int }
					if json.Unmarshal(q.Object, &o) == nil && o.Refuse != 0 && q.Op != "get" {
						return interceptor.Response{Refuse: &interceptor.Refusal{Status: o.Refuse,
							Message: "as it was asked for"}}
					}
					return interceptor.Allow()
				}})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if err := kit.Await(time.Minute, func() error {
		// Without a responder it fails at once.
		_, err := natsserver.Request(conn, "intercept.save.ready.check", []byte(`{}`))
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// Every operation of the OpenAPI document is requested, with valid and with invalid
// requests, and everything that this publishes conforms to the AsyncAPI document.
func TestRepliesAndMessagesConformToTheDocuments(t *testing.T) {
	s := serve(t, everything)
	conn := connect(t, s)
	c := newClient(t, s)
	c.ask(503, "POST", "/shop/sold-things", `{}`) // the interceptor is not connected yet
	serveInterceptor(t, conn)
	live := listen(t, conn, "Store.*", "Register", "Binary.*")
	questions := listen(t, conn, "intercept.>")
	for _, part := range []func(*client){
		objects, schemas, arrays, someFields, users, owned, intercepted, files, system,
	} {
		part(c)
	}
	// Passkeys need a host that browsers know, which this configuration does not have: nobody has one to remove.
	if all := c.unasked("createIdents", "removeFactorPasskey", "downloadArchiveFile", "headArchiveFile"); len(all) > 0 {
		t.Errorf("these were never requested with success:\n%s", strings.Join(all, "\n"))
	}
	// Slow bodies and internal errors don't occur in this test.
	if all := c.unmet(408, 500, 303); len(all) > 0 {
		t.Errorf("no reply had these statuses: %v", all)
	}
	messagesConform(t, s, conn, live, questions)
	changedMessagesAreInvalid(t, s, conn)
}

// objects requests a store without a schema.
func objects(c *client) {
	c.ask(201, "POST", "/authors", `{"uuid":"ada","name":"Ada","nested":{"a":1}}`, "If-None-Match: *")
	tag := c.last.Header.Get("Etag")
	c.ask(201, "POST", "/authors", `{}`, "Prefer: wait=30")
	c.ask(201, "POST", "/authors", `{"name":"Kay"}`, "Idempotency-Key: k")
	c.ask(201, "POST", "/authors", `{"name":"Kay"}`, "Idempotency-Key: k")
	c.ask(409, "POST", "/authors", `{"name":"Jay"}`, "Idempotency-Key: k")
	c.ask(200, "POST", "/authors", "{}\n{\"uuid\":7}\n", "Content-Type: application/x-ndjson")
	c.ask(200, "POST",
		"/batch", `{"operations":[{"method":"GET","path":"/authors/ada"},{"method":"POST","path":"/authors","body":{},"headers":{"Idempotency-Key":"b"}},{"method":"DELETE","path":"/x"}],"atomic":false}`)
	c.ask(400, "POST", "/batch", `{"operations":[]}`)
	c.ask(409, "POST", "/authors", `{"uuid":"ada"}`)
	c.ask(412, "POST", "/authors", `{"uuid":"ada"}`, "If-None-Match: *")
	c.ask(400, "POST", "/authors", `{"uuid":`)
	c.ask(400, "POST", "/authors", `{"uuid":"a/b"}`)
	c.ask(401, "POST", "/authors", `{}`, "Authorization: Bearer wrong")
	c.ask(403, "POST", "/authors", `{}`, "Sec-Fetch-Site: cross-site")
	c.ask(413, "POST", "/authors", `{"text":"`+strings.Repeat("x", 9000)+`"}`)
	c.ask(415, "POST", "/authors", `a=b`, "Content-Type: application/x-www-form-urlencoded")
	c.ask(415, "POST", "/authors", `{}`, "Content-Encoding: gzip")

	for _, method := range []string{"GET", "HEAD"} {
		c.ask(200, method, "/authors/ada", "")
		c.ask(304, method, "/authors/ada", "", "If-None-Match: "+tag)
		c.ask(412, method, "/authors/ada", "", `If-Match: "1"`)
		c.ask(400, method, "/authors/ada", "", `If-Match: 1`)
		c.ask(400, method, "/authors/.ada", "")
		c.ask(404, method, "/authors/nobody", "")
		c.ask(401, method, "/authors/ada", "", "Authorization: Bearer wrong")
		c.ask(200, method, "/authors", "")
		c.ask(200, method, "/authors?limit=1", "")
		c.ask(400, method, "/authors?limit=0", "")
		c.ask(400, method, "/authors?sort=name", "")
		c.ask(401, method, "/authors", "", "Authorization: Bearer wrong")
	}
	c.ask(200, "PUT", "/authors/ada", `{"name":"Ada Lovelace"}`, "If-Match: "+tag, "Prefer: wait=30")
	c.ask(412, "PUT", "/authors/ada", `{"name":"Ada"}`, "If-Match: "+tag)
	c.ask(412, "PUT", "/authors/ada", `{"name":"Ada"}`, "If-None-Match: *")
	c.ask(404, "PUT", "/authors/nobody", `{"name":"Ada"}`)
	c.ask(400, "PUT", "/authors/ada", `[]`)
	c.ask(415, "PUT", "/authors/ada", `{}`, "Content-Type: application/merge-patch+json")
	c.ask(413, "PUT", "/authors/ada", `{"text":"`+strings.Repeat("x", 9000)+`"}`)
	c.ask(200, "PATCH", "/authors/ada", `{"nested":{"a":null,"b":[1]}}`, "Content-Type: application/merge-patch+json")
	c.ask(200, "PATCH", "/authors/ada", `{"nested":null}`)
	c.ask(415, "PATCH", "/authors/ada", `{}`, "Content-Type: text/plain")
	c.ask(404, "PATCH", "/authors/nobody", `{}`)
	c.ask(404, "DELETE", "/authors/nobody", "")
	c.ask(412, "DELETE", "/authors/ada", "", `If-Match: "1"`)
	c.ask(400, "DELETE", "/authors/ada", "", `If-None-Match: "1"`)
	c.ask(204, "DELETE", "/authors/ada", "", "Prefer: wait=30")

	c.ask(201, "POST", "/silent", `{"uuid":"it"}`)
	c.ask(200, "PUT", "/silent/it", `{"a":1}`)
	c.ask(200, "PATCH", "/silent/it", `{"a":null}`)
	c.ask(204, "DELETE", "/silent/it", "")
}

// schemas requests stores with schemas.
func schemas(c *client) {
	c.ask(400, "POST", "/books", `{"uuid":"emma","title":""}`)
	c.ask(400, "POST", "/books", `{"uuid":"emma","title":"Emma","unknown":1}`)
	c.ask(400, "POST", "/books", `{"uuid":"emma","title":"Emma","minutes":3}`)
	for _, tree := range []string{
		`{"uuid":"oak","name":"Oak","tags":["tall","old"],"branches":[{"name":"b","branches":[{"name":"c"}]}],"more":"x","x-rings":7}`,
		`{"uuid":"form","schema":{"type":"string"}}`,
		`{"uuid":"yew","name":"Yew","parent":"oak","more":null}`,
	} {
		c.ask(201, "POST", "/trees", tree, "Prefer: wait=30")
	}
	c.ask(400, "POST", "/trees", `{"name":"x","schema":true}`)
	c.ask(400, "POST", "/trees", `{"name":"x","more":1}`)
	c.ask(200, "PUT", "/trees/oak", `{"tags":[]}`)
	c.ask(200, "PATCH", "/trees/oak", `{"tags":null,"name":"Oak tree"}`, "Content-Type: application/merge-patch+json",
		"Prefer: wait=30")
	c.ask(400, "PATCH", "/trees/oak", `{"name":null}`, "Content-Type: application/merge-patch+json")
	c.ask(200, "GET", "/trees/oak", "")
	if entries, _ := decode(c.t, c.last.body)["children"].([]any); len(entries) != 1 {
		c.t.Errorf("the tree has no copy of its child: %s", c.last.body)
	}
	// An object that was read can be sent back.
	c.ask(200, "PUT", "/trees/oak", string(c.last.body))
	c.ask(200, "HEAD", "/trees/oak", "")
	c.ask(204, "DELETE", "/trees/yew", "")
}

// arrays reads mapped arrays.
func arrays(c *client) {
	c.ask(201, "POST", "/authors", `{"uuid":"jane","name":"Jane"}`)
	c.ask(201, "POST",
		"/books", `{"uuid":"emma","title":"Emma","author":"jane","year":1815,"size":[1.5,2],"publisher":{"name":"Murray","within":{"name":"London"}},"covers":[7],"created":1}`, "Prefer: wait=30")
	c.ask(201, "POST", "/books", `{"title":"Persuasion","author":["jane"],"format":"audio","minutes":300}`,
		"Prefer: wait=30")
	c.ask(200, "GET", "/authors/jane", "")
	if entries, _ := decode(c.t, c.last.body)["books"].([]any); len(entries) != 2 {
		c.t.Errorf("the author does not have two books: %s", c.last.body)
	}
	for _, method := range []string{"GET", "HEAD"} {
		c.ask(200, method, "/books?limit=1&sort=title", "")
		c.ask(200, method, "/books?limit=1&count=exact&expand=author", "")
		c.ask(200, method, "/books?filter="+url.QueryEscape(`author == "jane" && year > 1800`), "")
		c.ask(200, method, "/books/emma", "")
	}
	c.ask(200, "PUT", "/books/emma", `{"format":null}`)
	c.ask(200, "PATCH", "/books/emma", `{"format":null,"publisher":{"within":null}}`)
	c.ask(200, "PUT", "/books/emma", string(c.last.body))
	c.ask(400, "PUT", "/books/emma", `{"minutes":0}`)
	c.ask(204, "DELETE", "/books/"+c.books()[1], "")
	c.ask(204, "DELETE", "/authors/jane", "", "Prefer: wait=30")
	c.ask(404, "GET", "/books/emma", "")
}

// someFields requests some fields of objects. The reply is what the schema of the parameter names.
func someFields(c *client) {
	c.ask(201, "POST", "/authors", `{"uuid":"anne","name":"Anne"}`)
	c.ask(201, "POST", "/books", `{"uuid":"agnes","title":"Agnes Grey","author":"anne"}`, "Prefer: wait=30")
	c.partial = "BooksPartial"
	c.ask(200, "GET", "/books/agnes?fields=year,author&expand=author", "")
	if decode(c.t, c.last.body)["_expanded"] == nil {
		c.t.Errorf("nothing is expanded: %s", c.last.body)
	}
	c.ask(200, "GET", "/books?fields=year", "")
	c.partial = ""
	c.ask(200, "GET", "/books/agnes?expand=author", "")
	c.ask(204, "DELETE", "/authors/anne", "", "Prefer: wait=30")
	c.ask(404, "GET", "/books/agnes", "")
}

// books returns the uuids of all books, sorted by title.
func (c *client) books() (uuids []string) {
	c.t.Helper()
	c.ask(200, "GET", "/books?sort=title", "")
	for _, item := range decode(c.t, c.last.body)["items"].([]any) {
		uuids = append(uuids, item.(map[string]any)["uuid"].(string))
	}
	return uuids
}

// enter registers a user and uses its session from then on.
func (c *client) enter(login string) {
	c.t.Helper()
	c.cookie = ""
	c.ask(204, "POST", "/auth/email", `{"register":true,"login":"`+login+`","password":"correct horse","name":"Ada"}`,
		"Prefer: wait=30")
	c.keep()
}

// keep stores the cookie of the last reply.
func (c *client) keep() {
	c.t.Helper()
	c.cookie = ""
	for _, set := range c.last.Header.Values("Set-Cookie") {
		if cookie, _, _ := strings.Cut(set, ";"); strings.HasPrefix(cookie, "belfry=") {
			c.cookie = cookie
		}
	}
	if c.cookie == "" {
		c.t.Fatalf("no session began: %s", c.last.Status)
	}
}

// users requests the routes below /auth.
func users(c *client) {
	c.ask(200, "GET", "/auth", "")
	c.ask(200, "HEAD", "/auth", "")
	c.ask(401, "GET", "/auth/me", "")
	c.ask(404, "POST", "/auth/email", `{"login":"nobody@example.com","password":"correct horse"}`)
	c.ask(400, "POST", "/auth/email", `{"register":true,"login":"no address","password":"correct horse"}`)
	c.ask(400, "POST", "/auth/email", `{"login":7}`)
	c.ask(413, "POST", "/auth/email", `{"login":"`+strings.Repeat("x", 70_000)+`"}`)
	c.ask(415, "POST", "/auth/email", `{}`, "Content-Type: text/plain")
	c.ask(429, "POST", "/auth/email",
		`{"register":true,"login":"limited@example.com","password":"correct horse","refuse":429}`)
	c.enter("ada@example.com")
	c.ask(303, "POST", "/auth/email", "login=ada@example.com&password=wrong",
		"Content-Type: application/x-www-form-urlencoded")
	c.ask(403, "POST", "/auth/email", `{"login":"ada@example.com","password":"wrong horse"}`)
	c.ask(200, "POST", "/auth/email", `{"login":"ada@example.com","password":"correct horse"}`,
		"Prefer: return=representation, wait=30")
	c.keep()
	for _, method := range []string{"GET", "HEAD"} {
		c.ask(200, method, "/auth/me", "")
		c.ask(200, method, "/auth/sessions", "")
		c.ask(302, "GET", "/auth/github", "")
		c.ask(302, "GET", "/auth/callback?state=unknown", "")
		c.ask(302, "GET", "/auth/email/callback?login=ada@example.com&token=wrong", "")
	}
	c.ask(200, "GET", "/auth/me", "")
	me := c.last.text(c.t, "uuid")
	if me == "" || strings.Contains(string(c.last.body), "password") {
		c.t.Errorf("the user is %s", c.last.body)
	}
	for _, method := range []string{"GET", "HEAD"} {
		c.ask(200, method, "/users/"+me, "")
		c.ask(200, method, "/idents/ada@example.com_email", "")
		c.ask(404, method, "/idents/bob@example.com_email", "")
	}
	c.ask(200, "PUT", "/users/"+me, `{"name":"Ada L."}`)
	c.ask(200, "PATCH", "/users/"+me, `{"name":null}`)
	c.ask(404, "DELETE", "/auth/sessions/unknown", "")
	c.ask(403, "POST", "/auth/keys", `{"name":"deploy","password":"wrong horse"}`)
	c.ask(400, "POST", "/auth/keys", `{"name":"","password":"correct horse"}`)
	c.ask(201, "POST", "/auth/keys",
		`{"name":"deploy","password":"correct horse","rule":"path == '/auth/me'","expires":"2999-01-01T00:00:00Z"}`)
	key := c.last.text(c.t, "id")
	c.ask(200, "GET", "/auth/me", "", "Authorization: Bearer "+c.last.text(c.t, "token"))
	for _, method := range []string{"GET", "HEAD"} {
		c.ask(200, method, "/auth/keys", "")
	}
	c.ask(204, "DELETE", "/auth/keys/"+key, "")
	c.ask(404, "DELETE", "/auth/keys/"+key, "")
	c.ask(400, "DELETE", "/auth/sessions/.x", "")
	for _, method := range []string{"GET", "HEAD", "DELETE"} {
		c.ask(404, method, "/auth/deletion", "")
	}
	c.ask(200, "GET", "/auth/export", "")
	c.ask(403, "POST", "/auth/deletion", `{"password":"wrong horse"}`)
	c.ask(202, "POST", "/auth/deletion", `{"password":"correct horse"}`)
	c.keep()
	for _, method := range []string{"GET", "HEAD"} {
		c.ask(200, method, "/auth/deletion", "")
	}
	c.ask(204, "DELETE", "/auth/deletion", "")
	c.ask(409, "DELETE", "/auth/idents/ada@example.com_email", "")
	c.ask(404, "DELETE", "/auth/idents/unknown", "")
	c.ask(403, "PUT", "/auth/email", `{"password":"wrong horse","newPassword":"battery staple"}`)
	c.ask(204, "PUT", "/auth/email", `{"password":"correct horse","newPassword":"battery staple"}`)
	c.keep()
	c.ask(204, "POST", "/auth/email", `{"register":true,"login":"ada2@example.com","password":"battery staple"}`)
	c.keep()
	c.ask(204, "DELETE", "/auth/idents/ada2@example.com_email", "")
	c.secondFactor()
	for _, method := range []string{"GET", "HEAD"} {
		c.ask(200, method, "/auth/activity?limit=2", "")
		c.ask(400, method, "/auth/activity?limit=0", "")
	}
	c.ask(202, "POST", "/auth/email/validation", `{"login":"ada@example.com"}`)
	c.ask(202, "POST", "/auth/email/recovery", `{"login":"nobody@example.com"}`)
	c.ask(403, "PUT", "/auth/email/recovery", `{"login":"ada@example.com","token":"wrong","password":"battery staple"}`)
	c.ask(200, "POST", "/auth/email/code", `{"login":"nobody@example.com"}`, "Prefer: return=representation")
	c.ask(202, "POST", "/auth/email/code", `{"login":"ada@example.com"}`)
	c.ask(400, "POST", "/auth/email/code", `{"login":"ada@example.com","kind":"sms"}`)
	c.ask(403, "PUT", "/auth/email/code", `{"login":"ada@example.com","code":"123456"}`)
	c.ask(400, "PUT", "/auth/email/code", `{"login":"ada@example.com"}`)
	c.loginByMail("ada@example.com")
	c.recover("ada@example.com")
	c.ask(204, "POST", "/auth/email", `{"login":"ada@example.com","password":"third password"}`)
	c.keep()
	c.ask(200, "GET", "/auth/sessions", "")
	var list struct{ Sessions []struct{ ID string } }
	if err := json.Unmarshal(c.last.body, &list); err != nil || len(list.Sessions) == 0 {
		c.t.Fatalf("sessions are %s", c.last.body)
	}
	c.ask(204, "DELETE", "/auth/sessions/"+list.Sessions[0].ID, "")
	c.ask(204, "POST", "/auth/email", `{"login":"ada@example.com","password":"third password"}`)
	c.keep()
	c.ask(204, "DELETE", "/auth", "")
	c.cookie = ""
	c.ask(303, "POST", "/auth/logout", "a=b", "Content-Type: application/x-www-form-urlencoded")
	c.ask(401, "DELETE", "/auth", "", "Authorization: Bearer wrong")
	c.applications("ada@example.com", "third password")
	c.enter("gone@example.com")
	c.ask(202, "PUT", "/auth/idents/gone@example.com_email/address",
		`{"address":"moved@example.com","password":"correct horse"}`)
	c.ask(403, "PUT", "/auth/idents/gone@example.com_email/address",
		`{"address":"moved@example.com","password":"wrong horse"}`)
	c.ask(400, "PUT", "/auth/idents/gone@example.com_email/address", `{"address":"ada3"}`)
	c.ask(404, "PUT", "/auth/idents/unknown/address", `{"address":"moved@example.com","password":"correct horse"}`)
	c.ask(403, "POST", "/auth/email/address", `{"login":"gone@example.com","token":"wrong"}`)
	c.ask(204, "POST", "/auth/email/address",
		`{"login":"moved@example.com","token":"`+c.mailed("Confirm your new")+`"}`)
	c.ask(202, "PUT", "/auth/idents/moved@example.com_email/address",
		`{"address":"gone@example.com","password":"correct horse"}`)
	c.ask(303, "POST", "/auth/email/address", "login=gone%40example.com&token=wrong",
		"Content-Type: application/x-www-form-urlencoded")
	c.ask(200, "GET", "/auth/me", "")
	c.ask(204, "DELETE", "/users/"+c.last.text(c.t, "uuid"), "", "Prefer: wait=30")
	c.cookie = ""
}

// loginByMail logs in by the token of a mailed link.
func (c *client) loginByMail(login string) {
	c.t.Helper()
	c.ask(200, "POST", "/auth/email/code", `{"login":"`+login+`","kind":"link"}`, "Prefer: return=representation")
	binding := c.last.text(c.t, "binding")
	c.ask(200, "PUT", "/auth/email/code",
		`{"login":"`+login+`","token":"`+c.mailed("Entering")+`","binding":"`+binding+`"}`,
		"Prefer: return=representation")
}

// recover sets a new password with the mailed token.
func (c *client) recover(login string) {
	c.t.Helper()
	c.ask(202, "POST", "/auth/email/recovery", `{"login":"`+login+`"}`)
	token := c.mailed("Recovering")
	c.ask(204, "PUT", "/auth/email/recovery", `{"login":"`+login+`","token":"`+token+`","password":"third password"}`)
}

// owned requests a store whose objects have owners, under a closed schema.
func owned(c *client) {
	c.ask(401, "POST", "/notes", `{"text":"x"}`)
	c.enter("owner@example.com")
	c.ask(201, "POST", "/notes",
		`{"uuid":"n","text":"mine","user":"somebody","meta":{"a":{"uuid":"i","user":"u","text":"t"}}}`)
	if c.last.text(c.t, "user") == "somebody" {
		c.t.Errorf("a client has set the owner: %s", c.last.body)
	}
	c.ask(400, "POST", "/notes", `{"text":"x","more":1}`)
	c.ask(400, "POST", "/notes", `{}`)
	for _, method := range []string{"GET", "HEAD"} {
		c.ask(200, method, "/notes/n", "")
		c.ask(200, method, "/notes", "")
	}
	c.ask(200, "GET", "/notes/n", "")
	c.ask(200, "PUT", "/notes/n", string(c.last.body))
	c.ask(200, "PATCH", "/notes/n", `{"public":false,"meta":{"a":null}}`)
	c.ask(201, "POST", "/notes", `{"uuid":"doomed","text":"x"}`)
	c.ask(204, "DELETE", "/notes/doomed", "")
	mine := c.cookie
	c.enter("stranger@example.com")
	c.ask(403, "GET", "/notes/n", "")
	c.ask(403, "PUT", "/notes/n", `{"text":"x"}`)
	c.ask(403, "DELETE", "/notes/n", "")
	c.cookie = mine
}

// intercepted requests a store with an interceptor.
func intercepted(c *client) {
	c.ask(201, "POST", "/shop/sold-things", `{"uuid":"lamp","reviewed":true}`)
	if strings.Contains(string(c.last.body), "reviewed") {
		c.t.Errorf("a client has set a field that only programs may set: %s", c.last.body)
	}
	for _, status := range []int{400, 401, 403, 404, 409, 412, 413, 415, 429} {
		body := fmt.Sprintf(`{"refuse":%d}`, status)
		c.ask(status, "POST", "/shop/sold-things", body)
		c.ask(status, "PUT", "/shop/sold-things/lamp", body)
		c.ask(status, "PATCH", "/shop/sold-things/lamp", body)
	}
	c.ask(200, "GET", "/shop/sold-things/lamp", "")
	c.ask(200, "HEAD", "/shop/sold-things/lamp", "")
	c.ask(200, "PUT", "/shop/sold-things/lamp", `{"a":1}`)
	c.ask(200, "PATCH", "/shop/sold-things/lamp", `{"a":null}`)
	conn := connect(c.t, c.server)
	if _, err := natsserver.Request(conn, "store.sold_things.save", []byte(`{"object":{"uuid":"it"}}`)); err != nil {
		c.t.Fatal(err)
	}
	c.ask(200, "GET", "/sold_things/it", "")
	c.ask(200, "HEAD", "/sold_things/it", "")
	c.ask(204, "DELETE", "/sold_things/it", "")
}

// files requests the files of objects.
func files(c *client) {
	c.ask(201, "POST", "/books", `{"uuid":"novel","title":"A novel"}`)
	for _, service := range []struct{ url, property string }{{"/binary", "texts"}, {"/photos", "covers"}} {
		place := "/Books/novel/" + service.property
		if service.url == "/binary" {
			c.ask(201, "POST", "/authors", `{"uuid":"ann"}`)
			place = "/Authors/ann/" + service.property
		}
		text := "Content-Type: text/plain"
		c.ask(201, "PUT", service.url+"/upload"+place+"/add", "once upon a time", text, "X-Filename: once.txt",
			"Prefer: wait=30")
		hash := c.last.text(c.t, "hash")
		c.ask(201, "PUT", service.url+"/upload"+place+"/1", "\x89PNG", "Content-Type: image/png")
		c.ask(200, "PUT", service.url+"/upload"+place+"/1", "there was", "Content-Type: application/x-anything")
		c.ask(201, "PUT", service.url+"/upload"+place+"/add",
			"--b\r\nContent-Disposition: form-data; name=artist\r\n\r\nHugh\r\n--b\r\nContent-Disposition: "+
				"form-data; name=file; filename=a.txt\r\n\r\nx\r\n--b--\r\n",
			"Content-Type: multipart/form-data; boundary=b")
		c.ask(409, "PUT", service.url+"/upload"+place+"/9", "x", text)
		c.ask(400, "PUT", service.url+"/upload"+place+"/x", "x", text)
		c.ask(412, "PUT", service.url+"/upload"+place+"/0", "x", text, `If-Match: "1"`)
		c.ask(415, "PUT", service.url+"/upload"+place+"/0", "x", "Content-Type: what is this")
		c.ask(404, "PUT", service.url+"/upload/Nothing/x/y/0", "x", text)
		c.ask(403, "PUT", service.url+"/upload"+place+"/add", "x", text, "Sec-Fetch-Site: cross-site")
		for _, method := range []string{"GET", "HEAD"} {
			c.ask(200, method, service.url+place+"/0", "")
			c.ask(200, method, service.url+place+"/1", "")
			c.ask(304, method, service.url+place+"/0", "", `If-None-Match: "`+hash+`"`)
			c.ask(412, method, service.url+place+"/0", "", `If-Match: "x"`)
			c.ask(404, method, service.url+place+"/7", "")
			c.ask(400, method, service.url+place+"/-1", "")
			c.ask(401, method, service.url+place+"/0", "", "Authorization: Bearer wrong")
		}
		c.ask(206, "GET", service.url+place+"/0", "", "Range: bytes=5-8")
		c.ask(416, "GET", service.url+place+"/0", "", "Range: bytes=500-")
		c.ask(412, "DELETE", service.url+place+"/1/"+hash, "")
		c.ask(400, "DELETE", service.url+place+"/0/hash", "")
		c.ask(204, "DELETE", service.url+place+"/0/"+hash, "", "Prefer: wait=30")
	}
	c.ask(413, "PUT", "/photos/upload/Books/novel/covers/add", strings.Repeat("x", 5000), "Content-Type: text/plain")
	c.ask(200, "GET", "/books/novel", "")
	if covers, _ := decode(c.t, c.last.body)["covers"].([]any); len(covers) != 2 {
		c.t.Errorf("the book does not have two covers: %s", c.last.body)
	}
	// This service is read-only and has no files here.
	c.ask(404, "GET", "/archive/Books/novel/covers/0", "")
	c.ask(404, "HEAD", "/archive/Books/novel/covers/0", "")
}

// system requests the routes of belfry itself.
func system(c *client) {
	for _, method := range []string{"GET", "HEAD"} {
		for _, path := range []string{"/healthz", "/livez", "/readyz", "/openapi.json", "/asyncapi.json", "/events",
			"/events?store=Books&store=Authors&event=Store.Saved&lastEventId=0"} {
			c.ask(200, method, path, "")
		}
		c.ask(400, method, "/events?store=Nothing", "")
		c.ask(400, method, "/openapi.json", "", "If-None-Match: x")
		c.ask(304, method, "/openapi.json", "", "If-None-Match: *")
		c.ask(304, method, "/asyncapi.json", "", "If-None-Match: *")
		c.ask(401, method, "/events", "", "Authorization: Bearer wrong")
	}
}
