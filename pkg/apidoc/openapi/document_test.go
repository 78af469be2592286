package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/api/modeltest"
)

// at finds a value by the names on the way to it, separated by blanks; nil for
// none.
func at(t *testing.T, document []byte, path string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(document, &v); err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(path, " ") {
		o, _ := v.(map[string]any)
		v = o[name]
	}
	return v
}

func names(v any) (all []string) {
	o, _ := v.(map[string]any)
	for name := range o {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func TestDocumentHasTheRoutesOfTheConfiguration(t *testing.T) {
	for _, c := range []struct{ name, config, path, want string }{
		{"all of a store", `stores: {A: {expose: {}}}`, "paths /a/{uuid}", "delete get head patch put"},
		{"no list", `stores: {A: {expose: {}}}`, "paths /a", "post"},
		{"a list", `stores: {A: {expose: {url: /x/y, list: true, restrict: {create: true}}}}`, "paths /x/y",
			"get head"},
		{"restricted", `stores: {A: {expose: {restrict: {update: true, delete: true}}}}`, "paths /a/{uuid}",
			"get head"},
		{"not exposed", `stores: {A: {}}`, "paths /a", ""},
		{"no e-mail", ``, "paths /auth/email", ""},
		{"e-mail", `authentication: {providers: {email: {}}}`, "paths /auth/email", "post put"},
		{"a provider that is off", `authentication: {providers: {github: {}}}`, "paths /auth/github", ""},
		{"a provider",
			`authentication: {providers: {my-own: {type: oidc, issuer: "https://id.example.org", clientID: x}}}`,
			"paths /auth/my-own", "get"},
		{"files", `{stores: {A: {expose: {}}}, binaries: {b: {expose: {restrict: {get: true}}}}}`,
			"paths /binary/{store}/{uuid}/{property}/{index}", ""},
		{"files to read", `{stores: {A: {expose: {}}}, binaries: {b: {expose: {url: /f}}}}`,
			"paths /f/{store}/{uuid}/{property}/{index}", "get head"},
		{"no documents", `documents: {openapi: false}`, "paths /openapi.json", ""},
		{"the other document", `documents: {openapi: false}`, "paths /asyncapi.json", "get head"},

		{"statuses of an open store", `stores: {A: {expose: {}}}`, "paths /a/{uuid} get responses",
			"200 304 400 401 403 404 412 429 500 503"},
		{"and of one with a policy", `stores: {A: {expose: {}, policy: owner}}`, "paths /a/{uuid} get responses",
			"200 304 400 401 403 404 412 429 500 503"},
		{"and of the user, whom a key may not be used for", ``, "paths /auth/me get responses",
			"200 401 403 429 500 503"},
		{"headers of what a key may not do", ``, "components responses Denied headers",
			"Cache-Control Link Www-Authenticate X-Request-Id"},
		{"headers of a limit", ``, "components responses Limited headers",
			"Cache-Control Link Ratelimit Ratelimit-Policy Retry-After X-Request-Id"},
		{"and of an intercepted one", `stores: {A: {expose: {}, intercept: {get: [{name: x}]}}}`,
			"paths /a/{uuid} get responses", "200 304 400 401 403 404 409 412 413 415 429 500 503"},
		{"a storage with signed URLs",
			`{stores: {A: {expose: {}}}, binaries: {b: {type: S3Storage, bucket: x, presign: 1m}}}`,
			"paths /binary/{store}/{uuid}/{property}/{index} get responses",
			"200 206 302 304 400 401 403 404 412 415 416 429 500 503"},
		{"and of a list with hidden fields", `stores: {A: {expose: {list: true}, fields: {pin: {read: user != null}}}}`,
			"paths /a get responses", "200 400 401 403 429 500 503"},
		{"what nothing refers to", ``, "components responses",
			"Conflict Denied Internal Invalid NotFound TooLarge TooSlow Unauthenticated Unavailable " +
				"Unsupported Limited"},
	} {
		want := strings.Fields(c.want)
		slices.Sort(want)
		if got := names(at(t, modeltest.OpenAPI(t, c.config), c.path)); !slices.Equal(got, want) {
			t.Errorf("%s: %s has %v, want %v", c.name, c.path, got, want)
		}
	}
}

func TestDocumentHasTheValuesOfTheConfiguration(t *testing.T) {
	for _, c := range []struct {
		name, config, path string
		want               any
	}{
		{"the cookie", ``, "components securitySchemes sessionCookie name", "belfry"},
		{"the cookie over https", `baseURL: https://example.org`, "components securitySchemes sessionCookie name",
			"__Host-belfry"},
		{"the version", ``, "info version", "1.2.3"},
		{"an operation's id", `stores: {sold-books: {expose: {}}}`, "paths /sold-books/{uuid} patch operationId",
			"patchSoldBooks"},
		{"an id that is taken", `stores: {Me: {expose: {}}}`, "paths /auth/me get operationId", "getMe2"},
		{"the description of an array", `stores: {A: {expose: {}}, B: {map: {A: {key: a, target: list, fields: [x]}}}}`,
			"components schemas A properties list items $ref", "#/components/schemas/AListEntry"},
		{"fields of one's own", `stores: {A: {expose: {}}}`, "components schemas AInput additionalProperties", true},
		{"what is for programs", `stores: {A: {expose: {}, readOnly: [role]}}`,
			"components schemas A properties role readOnly", true},
		{"what clients may not write", `stores: {A: {expose: {}, fields: {role: {write: "false"}}}}`,
			"components schemas A properties role readOnly", true},
		{"what no one reads", `stores: {A: {expose: {}, fields: {pin: {read: "false"}}}}`,
			"components schemas A properties pin", nil},
		{"and not for clients", `stores: {A: {expose: {}, readOnly: [role]}}`,
			"components schemas AInput properties role", nil},
	} {
		if got := at(t, modeltest.OpenAPI(t, c.config), c.path); got != c.want {
			t.Errorf("%s: %s is %v, want %v", c.name, c.path, got, c.want)
		}
	}
	servers, _ := at(t, modeltest.OpenAPI(t, `baseURL: https://example.org/api/`), "servers").([]any)
	if len(servers) != 1 || servers[0].(map[string]any)["url"] != "https://example.org/api" {
		t.Errorf("servers are %v", servers)
	}
	const described = "`list` has copies of the objects of `B` that name the object. They are deleted with it."
	if text := modeltest.OpenAPI(t, `stores: {A: {expose: {}},
		B: {map: {A: {key: a, target: list, fields: [x], cascade: true}}}}`); !strings.Contains(string(text), described) {
		t.Errorf("the description of A does not say: %s", described)
	}
}

// Repeated, since the order of map iteration is random.
func TestDocumentIsReproducible(t *testing.T) {
	const text = `
stores: {A: {expose: {}, indexes: [x], private: [p]}, B: {expose: {list: true}, map: {A: {key: a, target: b}, C: {key: c, target: b}}}, C: {expose: {}}, D: {expose: {}}}
authentication: {providers: {email: {}, x: {type: oidc, issuer: "https://x", clientID: x}, y: {type: oidc, issuer: "https://y", clientID: y}}}
binaries: {m: {expose: {url: /m}}, n: {expose: {url: /n}, map: {A: [q, r], B: [q], C: [s]}}}
`
	first := modeltest.OpenAPI(t, text)
	for range 20 {
		if !bytes.Equal(first, modeltest.OpenAPI(t, text)) {
			t.Fatal("the same configuration has two documents")
		}
	}
}

// What generators of types make something useful of.
func TestTypesAreAsNarrowAsTheyCanBe(t *testing.T) {
	text := modeltest.OpenAPI(t, `{stores: {
		Own: {expose: {list: true}, policy: owner}, Ruled: {expose: {}, policy: {get: "true"}}, Hidden: {expose: {}},
		Asked: {expose: {}, policy: owner, intercept: {get: [{name: x}]}}}, binaries: {f: {map: {Own: [a]}, expose: {url: /f}}}}`)
	const either = `{"anyOf":[{"$ref":"#/components/schemas/%s"},{"$ref":"#/components/schemas/UUIDOnly"}]}`
	const one = `{"$ref":"#/components/schemas/%s"}`
	for _, c := range []struct{ name, path, want string }{
		{"owners alone write, and read", "paths /own post responses 201 content application/json schema",
			fmt.Sprintf(one, "Own")},
		{"and change", "paths /own/{uuid} patch responses 200 content application/json schema",
			fmt.Sprintf(one, "Own")},
		{"a rule of get", "paths /ruled post responses 201 content application/json schema",
			fmt.Sprintf(either, "Ruled")},
		{"an interceptor of get", "paths /asked post responses 201 content application/json schema",
			fmt.Sprintf(either, "Asked")},
		{"bytes have no type", "paths /f/upload/{store}/{uuid}/{property}/{index} put requestBody content */* schema",
			`{"description":"The bytes of the file."}`},
		{"events of streamed stores",
			"paths /events get responses 200 content text/event-stream schema " +
				"contentSchema",
			`{"anyOf":[{"$ref":"#/components/schemas/OwnEvent"},{"$ref":"#/components/schemas/StreamSecurityEvent"},{"$ref":"#/components/schemas/StreamLeft"},{"$ref":"#/components/schemas/StreamNotice"}]}`},
	} {
		got, err := json.Marshal(at(t, text, c.path))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, want %s (%v)", c.name, got, c.want, err)
		}
	}
	if got := names(at(t, text, "components schemas OwnEvent")); !slices.Equal(got, []string{"anyOf", "description"}) {
		t.Errorf("the event: %v", got)
	}
	if at(t, text, "components schemas HiddenEvent") != nil {
		t.Error("a store that is not streamed has events")
	}
}
