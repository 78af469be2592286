package app

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"belfry/pkg/interceptor"
	"belfry/pkg/object"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// serveInterceptor answers on the app's bus until the test ends.
func (p *place) serveInterceptor(a *App, op, store, name string, handler interceptor.Handler) {
	p.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- interceptor.Serve(ctx, a.Bus().Conn(),
			interceptor.Spec{Name: name, Ops: []string{op}, Stores: []string{store}, Handler: handler})
	}()
	p.Cleanup(func() { cancel(); <-done })
	kit.WaitUntil(p, func() error {
		// Without a responder it fails at once.
		_, err := natsserver.Request(a.Bus().Conn(), interceptor.Subject(op, store, name), []byte(`{}`))
		return err
	})
}

func TestInterceptorsOfAConfiguration(t *testing.T) {
	p := newPlace(t, `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Books: {expose: {}, intercept: {save: [{name: moderation, timeout: 1m}]}}
  Users: {expose: {}, intercept: {register: [{name: welcome, timeout: 1m}]}}
authentication:
  providers:
    email: {postValidation: true, skipEmailValidation: true}
`)
	a := p.start()
	defer p.stop(a)
	p.want(a, "POST", "/books", `{"title":"Emma"}`, 503) // no interceptor answers
	p.serveInterceptor(a, "save", "Books", "moderation",
		func(_ context.Context, q interceptor.Request) interceptor.Response {
			if bytes.Contains(q.Object, []byte("casino")) {
				return interceptor.Response{Refuse: &interceptor.Refusal{Status: 400,
					Message: "no advertisements, please"}}
			}
			return interceptor.Response{Amend: object.Object{"checked": []byte("true")}}
		})
	if status, body := p.do(a, "POST", "/books", `{"title":"casino"}`); status != 400 ||
		!strings.Contains(body, "no advertisements, please") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := p.do(a, "POST", "/books", `{"title":"Emma"}`); status != 201 ||
		!strings.Contains(body, `"checked":true`) {
		t.Errorf("%d %s", status, body)
	}

	p.serveInterceptor(a, "register", "Users", "welcome",
		func(_ context.Context, q interceptor.Request) interceptor.Response {
			switch {
			case bytes.Contains(q.Object, []byte("password")) || bytes.Contains(q.Datas, []byte("correct horse")):
				return interceptor.Response{Refuse: &interceptor.Refusal{Message: "a password was sent"}}
			case bytes.Contains(q.Datas, []byte("@spam.example")):
				return interceptor.Response{Refuse: &interceptor.Refusal{Message: "not from there"}}
			}
			return interceptor.Response{Amend: object.Object{"plan": []byte(`"free"`), "idents": []byte("[1]"),
				"password": []byte(`"x"`)}}
		})
	register := func(login string) (int, string) {
		return p.do(a, "POST", "/auth/email",
			`{"login":"`+login+`","password":"correct horse","register":true,"name":"Ada"}`)
	}
	if status, body := register("eve@spam.example"); status != 403 || !strings.Contains(body, "not from there") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := register("ada@example.com"); status != 204 {
		t.Fatalf("%d %s", status, body)
	}
	// The amended user exists once, and can log in; the refused one never was.
	p.want(a, "POST", "/auth/email", `{"login":"ada@example.com","password":"correct horse"}`, 204)
	p.want(a, "POST", "/auth/email", `{"login":"eve@spam.example","password":"correct horse"}`, 404)
	users, _, err := a.Set().Store("Users").Scan(t.Context(), nil, 10)
	if err != nil || len(users) != 1 {
		t.Fatalf("%d users, %v", len(users), err)
	}
	o, err := users[0].Object()
	if err != nil {
		t.Fatal(err)
	}
	if plan, _ := o.Text("plan"); plan != "free" || string(o["idents"]) == "[1]" {
		t.Error(errors.New("the user is " + string(users[0].Body)))
	}
}
