package app

import (
	"slices"
	"strings"
	"testing"
)

// costly are routes whose requests are alike in what they may take, and what they may take: bytes that are allocated
// for what is in the head of a request, and for what is in its body, of which each byte may count several times. Before
// a body is read everybody may ask, so the least that a route needs for its body is what counts.
type costlyRoutes struct {
	name   string
	routes string
	bodies func() []hostile
	head   int // bytes
	body   int // bytes, besides
	times  int // the bytes of the body

	stranger int // bytes in place of body and times, for who is not logged in; 0: as everybody
}

var costlyRows = []costlyRoutes{
	{name: "without a body", head: 640 << 10, routes: `
		GET /* GET /auth GET /auth/apple GET /auth/authorize GET /auth/callback GET /auth/deletion
		GET /auth/email/callback GET /auth/factors GET /auth/github GET /auth/idents/{uuid}/token GET /auth/keys GET /auth/me
		GET /auth/pages.css GET /auth/pages.js GET /auth/passkey.js GET /auth/passkeys GET /auth/sessions
		GET /authors/{uuid} GET /books/{uuid} GET /users/{uuid} GET /binary/{store}/{uuid}/{property}/{index} GET /events
		GET /healthz GET /livez GET /readyz GET /metrics GET /openapi.json GET /asyncapi.json GET /.well-known/oauth-authorization-server
		DELETE /auth DELETE /auth/deletion DELETE /auth/factors/email DELETE /auth/factors/passkey DELETE /auth/factors/totp
		DELETE /auth/idents/{uuid} DELETE /auth/keys/{uuid} DELETE /auth/sessions/{uuid} DELETE /authors/{uuid} DELETE /books/{uuid}
		DELETE /binary/{store}/{uuid}/{property}/{index}/{hash}`},
	{name: "lists", head: 2 << 20, routes: `GET /authors GET /books`},
	// a search in the log, with the work of the embedded bus
	{name: "the activity", head: 24 << 20, routes: `GET /auth/activity`},
	{name: "exports", head: 6 << 20, routes: `GET /auth/export`},
	{name: "pages", head: 640 << 10, routes: `
		GET /account GET /login GET /login-failed GET /login/address GET /login/mail GET /recovery GET /register GET /second-factor`},
	// a list, and the plans of its other orders for the same filter
	{name: "a list in the console", head: 3 << 20, routes: `GET /console/objects/{store}`},
	{name: "the console", head: 2 << 20, routes: `
		GET /console GET /console/ GET /console/* GET /console/api GET /console/api/openapi.json GET /console/assets/{name}
		GET /console/docs GET /console/docs/* GET /console/docs/search
		GET /console/first GET /console/go GET /console/letters GET /console/letters/{id} GET /console/live GET /console/login
		GET /console/logs GET /console/mails
		GET /console/mails/{name} GET /console/map GET /console/model GET /console/model/{store}
		GET /console/configuration/add GET /console/configuration/changes GET /console/configuration/changes/{number}
		GET /console/configuration/limits GET /console/configuration/new-store GET /console/configuration/settings
		GET /console/configuration/settings/{kind}/{name} GET /console/configuration/settings/{kind}/{name}/remove
		GET /console/configuration/stores/{store}/edit/{section} GET /console/configuration/stores/{store}/field
		GET /console/configuration/stores/{store}/files
		GET /console/configuration/stores/{store}/remove GET /console/configuration/stores/{store}/remove-field
		GET /console/model/{store}/names GET /console/objects GET /console/objects/{store}/new
		GET /console/objects/{store}/bulk GET /console/objects/{store}/export
		GET /console/objects/{store}/import GET /console/objects/{store}/import/columns
		GET /console/objects/{store}/import/file GET /console/objects/{store}/import/refused
		GET /console/objects/{store}/object/{uuid} GET /console/objects/{store}/object/{uuid}/delete
		GET /console/objects/{store}/object/{uuid}/files/{property}/{index} GET /console/objects/{store}/object/{uuid}/history
		GET /console/objects/{store}/object/{uuid}/files/{property}/{index}/preview
		GET /console/objects/{store}/object/{uuid}/history/{sequence}
		GET /console/schemas GET /console/second-factor GET /console/session GET /console/settings GET /console/start
		GET /console/step-up
		GET /console/system GET /console/system/charts
		GET /console/users GET /console/users/keys GET /console/users/new GET /console/users/{uuid}
		GET /console/users/{uuid}/as GET /console/users/{uuid}/as/{store} GET /console/users/{uuid}/as/{store}/{object}
		GET /console/verify GET /console/workers
		GET /console/workers/{name}`},
	{name: "objects", head: 640 << 10, body: 16 << 20, times: 12, bodies: objectBodies, routes: `
		PUT /authors/{uuid} PATCH /authors/{uuid} PUT /books/{uuid} PATCH /books/{uuid}
		PUT /users/{uuid} PATCH /users/{uuid}`},
	{name: "batches", head: 640 << 10, body: 8 << 20, times: 12, bodies: batchBodies, routes: `POST /batch`},
	{name: "files", head: 640 << 10, body: 1 << 20, times: 8, bodies: fileBodies,
		routes: `PUT /binary/upload/{store}/{uuid}/{property}/{index} POST /auth/me/picture`},
	{name: "logins", head: 640 << 10, body: 2 << 20, bodies: loginForms, routes: `
		PATCH /auth/passkeys/{uuid} POST /auth/callback POST /auth/deletion POST /auth/email POST /auth/email/address POST /auth/email/code
		POST /auth/email/recovery POST /auth/email/validation POST /auth/factors/email POST /auth/factors/passkey
		POST /auth/factors/recovery POST /auth/idents/{uuid}/address POST /auth/logout POST /auth/me/name
		POST /auth/passkey POST /auth/passkey/options POST /auth/passkeys POST /auth/passkeys/registration POST /auth/passkeys/{uuid}
		POST /auth/second-factor POST /auth/second-factor/code POST /auth/second-factor/passkey POST /auth/sessions/{uuid}
		POST /auth/step-up POST /auth/token PUT /auth/email PUT /auth/email/code PUT /auth/email/recovery PUT /auth/factors/email
		PUT /auth/factors/passkey PUT /auth/factors/totp PUT /auth/idents/{uuid}/address`},
	// of a secret
	{name: "pictures", head: 3 << 20, body: 2 << 20, bodies: loginForms, routes: `POST /auth/factors/totp`},
	{name: "hashes of passwords", head: 640 << 10, body: 22 << 20, stranger: 2 << 20, bodies: loginForms,
		routes: `POST /auth/keys`},
	{name: "forms of the console", head: 2 << 20, body: 2 << 20, times: 5, stranger: 2 << 20, bodies: consoleForms,
		routes: `
		POST /console/first POST /console/letters POST /console/login POST /console/login/passkey POST /console/logout
		POST /console/configuration/changes/{number} POST /console/configuration/limits
		POST /console/configuration/new-store POST /console/configuration/settings/{kind}/{name}
		POST /console/configuration/settings/{kind}/{name}/remove
		POST /console/configuration/stores/{store}/edit/{section} POST /console/configuration/stores/{store}/field
		POST /console/configuration/stores/{store}/files
		POST /console/configuration/stores/{store}/remove POST /console/configuration/stores/{store}/remove-field
		POST /console/model/{store}/test
		POST /console/objects/{store}/bulk POST /console/objects/{store}/object/{uuid}/cell
		POST /console/objects/{store}/object/{uuid}/undelete POST /console/objects/{store}/object/{uuid}/undo
		POST /console/pins POST /console/start POST /console/theme
		POST /console/objects/{store}/import/discard POST /console/objects/{store}/import/file
		POST /console/objects/{store}/check POST /console/objects/{store}/new POST /console/objects/{store}/pick
		POST /console/objects/{store}/object/{uuid}/pick POST /console/objects/{store}/object/{uuid}
		POST /console/objects/{store}/object/{uuid}/check POST /console/objects/{store}/object/{uuid}/delete
		POST /console/objects/{store}/object/{uuid}/files/{property} POST /console/objects/{store}/object/{uuid}/files/{property}/{index}/delete
		POST /console/second-factor POST /console/second-factor/code
		POST /console/second-factor/passkey POST /console/settings/mail POST /console/step-up POST /console/step-up/code POST /console/step-up/passkey
		POST /console/users POST /console/users/{uuid}/admin
		POST /console/users/{uuid}/as POST /console/users/{uuid}/as/end POST /console/users/{uuid}/changes POST /console/users/{uuid}/deletion
		POST /console/users/{uuid}/disabled POST /console/users/{uuid}/factors POST /console/users/{uuid}/idents/{ident}
		POST /console/users/{uuid}/invitation
		POST /console/users/{uuid}/keys POST /console/users/{uuid}/keys/{id} POST /console/users/{uuid}/recovery
		POST /console/users/{uuid}/sessions POST /console/users/{uuid}/sessions/{id} POST /console/workers/{name}/reset`},
	// What they begin, or wake, is measured with them.
	{name: "creations", head: 640 << 10, body: 36 << 20, times: 8, bodies: creations,
		routes: `POST /authors POST /books`},
	{name: "runs of the console", head: 2 << 20, body: 24 << 20, times: 5, stranger: 2 << 20, bodies: consoleForms,
		routes: `
		POST /console/objects/{store}/bulk/run POST /console/objects/{store}/bulk/stop
		POST /console/objects/{store}/import/run POST /console/objects/{store}/import/stop
		POST /console/schemas POST /console/schemas/stop POST /console/verify POST /console/verify/stop`},
}

// listed returns the routes of a row, as "GET /books".
func (c costlyRoutes) listed() (all []string) {
	for pair := range slices.Chunk(strings.Fields(c.routes), 2) {
		all = append(all, strings.Join(pair, " "))
	}
	return all
}

// Every route has a bound of what a request of it allocates: whoever adds a route adds it to a row, and with it its
// hostile requests.
func TestEveryRouteHasACost(t *testing.T) {
	rows := map[string]string{}
	for _, row := range costlyRows {
		for _, route := range row.listed() {
			rows[route] = row.name
		}
	}
	c := startCosts(t)
	served := c.app.now().API.AllRoutes()
	for _, route := range served {
		// HEAD has the handler of GET.
		if get := strings.Replace(route, "HEAD ", "GET ", 1); rows[get] == "" {
			t.Errorf("%s is in no row of costlyRows: say what its requests may cost", route)
		}
	}
	for route := range rows {
		if route != "GET /*" && !slices.Contains(served, route) {
			t.Errorf("%s has a row in costlyRows, and is no route", route)
		}
	}
}

// A request of a route allocates no more than its row says, whatever it holds.
func TestWhatRoutesCost(t *testing.T) {
	c := startCosts(t)
	for _, row := range costlyRows {
		t.Run(row.name, func(t *testing.T) {
			in := &costs{place: &place{T: t, folder: c.folder, config: c.config, logged: c.logged}, app: c.app,
				requests: c.requests}
			in.row(row)
		})
	}
}

// sampled is how many routes of a row have all heads between them. What reads a head is the same for most routes.
const sampled = 3

// row measures the routes of a row: as nobody, and as an admin.
func (c *costs) row(row costlyRoutes) {
	all, routes := heads(), row.listed()
	for i, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		inputs := all
		if len(routes) >= sampled {
			inputs = nil
			for n := i % sampled; n < len(all); n += sampled {
				inputs = append(inputs, all[n])
			}
		}
		if row.bodies != nil {
			inputs = append(inputs[:len(inputs):len(inputs)], row.bodies()...)
		}
		for _, token := range []string{"", c.session()} {
			worst, of := cost{}, hostile{}
			for _, in := range inputs {
				most := row.head
				switch {
				case in.body == "":
				case token == "" && row.stranger > 0:
					most += row.stranger
				default:
					most += row.body + row.times*len(in.body)
				}
				most *= raced
				got := c.measure(in, method, concrete(path), token, uint64(most))
				if got.bytes > uint64(most) {
					c.Errorf("%s, %s%s: a request of %d bytes has %d allocated, at most %d are expected (%d)", route,
						in.name, as(token), in.size(), got.bytes, most, got.status)
				}
				if got.bytes > worst.bytes {
					worst, of = got, in
				}
			}
			c.Logf("%s%s: %d KiB in %d objects for %s of %d KiB", route, as(token), worst.bytes>>10, worst.objects,
				of.name, of.size()>>10)
		}
	}
}

func as(token string) string {
	if token == "" {
		return ", by nobody"
	}
	return ", by an admin"
}

// concrete returns the path of a request to a route.
func concrete(path string) string {
	if path == "/*" {
		return "/x"
	}
	for _, p := range []string{"{uuid}", "{id}", "{ident}", "{hash}", "{object}", "*"} {
		path = strings.ReplaceAll(path, p, "x")
	}
	if strings.HasPrefix(path, "/console/workers") {
		path = strings.ReplaceAll(path, "{name}", "mapping")
	}
	return strings.NewReplacer("{store}", "Books", "{property}", "covers", "{index}", "0", "{name}", "x").Replace(path)
}
