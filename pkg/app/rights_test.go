package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"belfry/pkg/client"
	"belfry/pkg/object"
	"belfry/pkg/operations/importer"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

// ruled is a store of the test of rights: its rules in YAML, and what they allow.
type ruled struct {
	rules   string
	allowed map[policy.Op]right // of an operation that is missing: that of get
}

// right is what a rule allows: a caller, "" for nobody, and an object; none for a creation.
type right func(caller string, o note) bool

// note is an object of the test. Its uuid is its name.
type note struct {
	name, user string
	public     bool
}

var rightsNotes = []note{{"shown", "ann", true}, {"kept", "ann", false}, {"other", "bob", false},
	{"nobodys", "", false}}

func rightsStores() map[string]ruled {
	anyone := func(string, note) bool { return true }
	nobody := func(string, note) bool { return false }
	loggedIn := func(caller string, _ note) bool { return caller != "" }
	owner := func(caller string, o note) bool { return caller != "" && caller == o.user }
	ownerOrPublic := func(caller string, o note) bool { return owner(caller, o) || o.public }
	of := func(create, get, update, list right) map[policy.Op]right {
		return map[policy.Op]right{policy.Create: create, policy.Get: get, policy.Update: update, policy.Delete: update,
			policy.List: list}
	}
	return map[string]ruled{
		"Open": {`bus: true`, of(anyone, anyone, anyone, anyone)},
		"LoggedIn": {`policy: {create: user != null, get: user != null, update: user != null, delete: user != null}`,
			of(loggedIn, loggedIn, loggedIn, loggedIn)},
		"Owned": {`policy: owner`, of(loggedIn, ownerOrPublic, owner, ownerOrPublic)},
		"Mixed": {`owner: user, policy: {create: user != null, get: "isOwner || object.public == true", update: isOwner, delete: isOwner}`,
			of(loggedIn, ownerOrPublic, owner, ownerOrPublic)},
		"Closed": {`policy: {create: "false", get: "false", update: "false", delete: "false"}`,
			of(nobody, nobody, nobody, nobody)},
		"Failing": {
			`policy: {create: input.nothing == 1, get: object.nothing == 1, update: object.nothing == 1, delete: object.nothing == 1}`,
			of(nobody, nobody, nobody, nobody)},
		"Unlisted": {`policy: {create: "true", get: "true", update: "false", delete: "false", list: "false"}`,
			of(anyone, anyone, nobody, nobody)},
		"ListOwned": {
			`owner: user, policy: {create: "true", get: user != null, update: isOwner, delete: isOwner, list: isOwner}`,
			of(anyone, loggedIn, owner, owner)},
		"ByPrivate": {
			`policy: {create: "true", get: object.secret == 'hidden' && user != null, update: user != null && object.user == user.uuid, delete: "false"}`,
			map[policy.Op]right{policy.Create: anyone, policy.Get: loggedIn, policy.Update: owner,
				policy.Delete: nobody, policy.List: loggedIn}},
		"Unreadable": {
			`policy: {create: "true", get: "false", update: "true", delete: "false"}`,
			map[policy.Op]right{policy.Create: anyone, policy.Get: nobody, policy.Update: anyone, policy.Delete: nobody,
				policy.List: nobody}},

		// What a policy does not name.
		"OwnerAlone":  {`owner: user`, of(loggedIn, ownerOrPublic, owner, ownerOrPublic)},
		"CreateAlone": {`policy: {create: "true"}`, of(anyone, nobody, nobody, nobody)},
		"GetAlone":    {`policy: {get: user != null}`, of(nobody, loggedIn, nobody, loggedIn)},
		"UpdateAlone": {`policy: {update: "true"}`, map[policy.Op]right{policy.Create: nobody, policy.Get: nobody,
			policy.Update: anyone, policy.Delete: nobody, policy.List: nobody}},
		"DeleteAlone": {`policy: {delete: "true"}`, map[policy.Op]right{policy.Create: nobody, policy.Get: nobody,
			policy.Update: nobody, policy.Delete: anyone, policy.List: nobody}},
		"ListAlone":   {`policy: {list: "true"}`, of(nobody, nobody, nobody, anyone)},
		"NoneNamed":   {`policy: {default: deny}`, of(nobody, nobody, nobody, nobody)},
		"OwnedPartly": {`owner: user, policy: {get: isOwner}`, of(nobody, owner, nobody, owner)},
		"OthersMay": {`policy: {default: allow, delete: "false"}`, map[policy.Op]right{policy.Create: anyone,
			policy.Get: anyone, policy.Update: anyone, policy.Delete: nobody, policy.List: anyone}},
		"OpenByChoice": {`policy: {default: allow}`, of(anyone, anyone, anyone, anyone)},
		"OwnersOpen":   {`owner: user, policy: {default: allow}`, of(anyone, anyone, anyone, anyone)},
	}
}

// rights is a belfry with a store for each set of rules, all with the same objects.
type rights struct {
	*place
	app     *App
	stores  map[string]ruled
	callers map[string]string // their tokens; "" for nobody
	uuids   map[string]string // of the users
}

func newRights(t *testing.T) *rights {
	t.Helper()
	r := &rights{stores: rightsStores(), callers: map[string]string{"": ""}, uuids: map[string]string{"": ""}}
	var text strings.Builder
	text.WriteString("listen: 127.0.0.1:0\nbus: {listen: \"127.0.0.1:0\"}\nauthentication: {providers: {email: " +
		"{postValidation: true}}}\nstores:\n  Boxes: {expose: {list: true}}\n")
	fields := "binaries: {binary: {map: {"
	for _, name := range slices.Sorted(maps.Keys(r.stores)) {
		path := strings.ToLower(name)
		fmt.Fprintf(&text, "  %s: {expose: {url: /%s, list: true}, uuid: client, private: [secret], map: {Boxes: "+
			"{key: box, target: %s, fields: text}}, %s}\n",
			name, path, path, r.stores[name].rules)
		fields += name + ": [photo], "
	}
	r.place = newPlace(t, text.String()+strings.TrimSuffix(fields, ", ")+"}}}\n")
	r.app = r.start()
	for _, user := range []string{"ann", "bob"} {
		r.register(user)
	}
	r.want(r.app, "POST", "/boxes", `{"uuid":"box"}`, http.StatusCreated)
	for name := range r.stores {
		for _, n := range rightsNotes {
			o := fmt.Sprintf(`{"text":"of %s","secret":"hidden","box":"box","public":%t,"user":%q}`, n.name, n.public,
				r.uuids[n.user])
			parsed, err := object.Parse([]byte(o))
			if err == nil {
				_, err = r.app.Set().Store(name).Save(t.Context(), parsed, n.name)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	kit.WaitUntil(t, func() error {
		_, text := r.as("", "GET", "/boxes/box", "")
		if n := strings.Count(text, `"text"`); n != len(r.stores)*len(rightsNotes) {
			return fmt.Errorf("the arrays have %d copies", n)
		}
		return nil
	})
	return r
}

func (r *rights) register(user string) {
	r.Helper()
	res, err := http.Post("http://"+r.app.HTTPAddress()+"/auth/email", "application/json",
		strings.NewReader(fmt.Sprintf(`{"register":true,"login":"%s@example.com","password":"the password of %s"}`,
			user, user)))
	if err != nil {
		r.Fatal(err)
	}
	_ = res.Body.Close()
	for _, c := range res.Cookies() {
		if strings.HasSuffix(c.Name, "belfry") {
			r.callers[user] = c.Value
		}
	}
	var me struct{ UUID string }
	if _, text := r.as(user, "GET", "/auth/me", ""); json.Unmarshal([]byte(text), &me) != nil || me.UUID == "" {
		r.Fatalf("%s, as whom %s is logged in", text, user)
	}
	r.uuids[user] = me.UUID
}

// request sends a request as a caller.
func (r *rights) request(ctx context.Context, caller, method, path, body string) *http.Response {
	r.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+r.app.HTTPAddress()+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	if caller != "" {
		req.Header.Set("Authorization", "Bearer "+r.callers[caller])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	return res
}

// as sends a request as a caller and returns the reply, in which no private field may be.
func (r *rights) as(caller, method, path, body string) (int, string) {
	r.Helper()
	res := r.request(r.Context(), caller, method, path, body)
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		r.Fatal(err)
	}
	if strings.Contains(string(data), "hidden") || strings.Contains(string(data), "secret") {
		r.Errorf("%s %s as %q shows what is private: %s", method, path, caller, data)
	}
	return res.StatusCode, string(data)
}

// judge compares a reply with what the rules allow.
func (r *rights) judge(what, caller string, status, success int, allowed bool) {
	r.Helper()
	want := success
	switch {
	case !allowed && caller == "":
		want = http.StatusUnauthorized
	case !allowed:
		want = http.StatusForbidden
	}
	if status != want {
		r.Errorf("%s as %q: %d, want %d", what, caller, status, want)
	}
}

// Every way in asks the same rules: HTTP, lists, files, streams of events and imports; replies of writes show what a
// get would. Requests on the bus are not judged by rules, and show nothing private either, nor do mapped arrays.
func TestEveryWayInAsksTheSameRules(t *testing.T) {
	r := newRights(t)
	for _, caller := range []string{"", "bob", "ann"} {
		r.checkReads(caller)
		r.checkEvents(caller)
	}
	r.checkBus()
	for _, caller := range []string{"", "bob", "ann"} {
		r.checkCreations(caller)
		r.checkWrites(caller)
	}
	for _, caller := range []string{"", "bob", "ann"} {
		r.checkDeletions(caller)
	}
}

// each calls do for every store and object, with the path of its store and what its rules allow.
func (r *rights) each(do func(name, path string, may map[policy.Op]right, n note)) {
	for name, s := range r.stores {
		for _, n := range rightsNotes {
			do(name, "/"+strings.ToLower(name), s.allowed, n)
		}
	}
}

func (r *rights) checkReads(caller string) {
	r.Helper()
	r.each(func(name, path string, may map[policy.Op]right, n note) {
		status, _ := r.as(caller, "GET", path+"/"+n.name, "")
		r.judge("GET "+path+"/"+n.name, caller, status, http.StatusOK, may[policy.Get](caller, n))
		status, _ = r.as(caller, "GET", "/binary/"+name+"/"+n.name+"/photo/0", "")
		r.judge("the file of "+path+"/"+n.name, caller, status, http.StatusNotFound, may[policy.Get](caller, n))
	})
	for name, s := range r.stores {
		var want []string
		for _, n := range rightsNotes {
			if s.allowed[policy.List](caller, n) {
				want = append(want, n.name)
			}
		}
		for _, query := range []string{"", "&limit=1", "&limit=2"} {
			got, denied := r.list(caller, "/"+strings.ToLower(name)+"?"+query)
			if slices.Sort(want); !slices.Equal(got, want) && (!denied || len(want) > 0) {
				r.Errorf("the list of %s%s as %q: %v, want %v", name, query, caller, got, want)
			}
		}
	}
	r.as(caller, "GET", "/boxes/box", "")
}

// list reads all pages of a list, or reports that it is denied.
func (r *rights) list(caller, path string) (uuids []string, denied bool) {
	r.Helper()
	for next := ""; ; {
		status, text := r.as(caller, "GET", path+next, "")
		if status == http.StatusUnauthorized || status == http.StatusForbidden {
			return nil, true
		}
		var page struct {
			Items  []struct{ UUID string }
			Cursor string
		}
		if err := json.Unmarshal([]byte(text), &page); err != nil || status != http.StatusOK {
			r.Fatalf("%s: %d, %s", path, status, text)
		}
		for _, item := range page.Items {
			uuids = append(uuids, item.UUID)
		}
		if page.Cursor == "" {
			slices.Sort(uuids)
			return uuids, false
		}
		next = "&cursor=" + page.Cursor
	}
}

// checkEvents reads the stream from its beginning to an event that everyone may receive.
func (r *rights) checkEvents(caller string) {
	r.Helper()
	_, text := r.as(caller, "POST", "/boxes", `{}`)
	var last struct{ UUID string }
	if err := json.Unmarshal([]byte(text), &last); err != nil {
		r.Fatal(err)
	}
	ctx, leave := context.WithCancel(r.Context())
	defer leave()
	res := r.request(ctx, caller, "GET", "/events?lastEventId=0&event=Store.Saved", "")
	defer func() { _ = res.Body.Close() }()
	got := map[string]bool{}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue
		}
		if strings.Contains(data, "hidden") {
			r.Errorf("the stream of %q shows what is private: %s", caller, data)
		}
		var e struct{ Store, UUID string }
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			r.Fatal(err)
		}
		if e.UUID == last.UUID {
			break
		}
		got[e.Store+" "+e.UUID] = true
	}
	r.each(func(name, _ string, may map[policy.Op]right, n note) {
		if want := may[policy.Get](caller, n) && may[policy.List](caller, n); got[name+" "+n.name] != want {
			r.Errorf("the stream of %q has the event of %s %s: %t, want %t", caller, name, n.name, !want, want)
		}
	})
}

func (r *rights) checkBus() {
	r.Helper()
	conn, err := nats.Connect(r.app.Bus().ClientURL(), nats.Timeout(kit.Limit))
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close()
	r.each(func(name, _ string, _ map[policy.Op]right, n note) {
		stored, err := client.New(conn).Store(name).Get(r.Context(), n.name)
		if text := string(stored.Object.Encode()); err != nil || !strings.Contains(text, "of "+n.name) ||
			strings.Contains(text, "hidden") {
			r.Errorf("%s %s on the bus: %s, %v", name, n.name, text, err)
		}
	})
}

func (r *rights) checkCreations(caller string) {
	r.Helper()
	for name, s := range r.stores {
		path, allowed := "/"+strings.ToLower(name), s.allowed[policy.Create](caller, note{})
		status, text := r.as(caller, "POST", path, `{"text":"new"}`)
		r.judge("POST "+path, caller, status, http.StatusCreated, allowed)
		mine := note{user: caller}
		if allowed && strings.Contains(text, "new") != s.allowed[policy.Get](caller, mine) && name != "ByPrivate" {
			r.Errorf("the reply of POST %s as %q: %s", path, caller, text)
		}
		i := importer.New(importer.Options{URL: "http://" + r.app.HTTPAddress() + path, Token: r.callers[caller]})
		err := i.Run(r.Context(), strings.NewReader(fmt.Sprintf(`{"uuid":"import-%s","text":"imported"}`, caller)))
		if p := i.Progress(); (p.Created == 1) != allowed || (p.Failed == 1) == allowed {
			r.Errorf("an import into %s as %q: %+v, %v", name, caller, p, err)
		}
	}
}

func (r *rights) checkWrites(caller string) {
	r.Helper()
	r.each(func(name, path string, may map[policy.Op]right, n note) {
		allowed := may[policy.Update](caller, n)
		for _, method := range []string{"PUT", "PATCH"} {
			status, text := r.as(caller, method, path+"/"+n.name, `{}`)
			r.judge(method+" "+path+"/"+n.name, caller, status, http.StatusOK, allowed)
			if shown := strings.Contains(text, "of "+n.name); shown != (allowed && may[policy.Get](caller, n)) {
				r.Errorf("the reply of %s %s/%s as %q: %s", method, path, n.name, caller, text)
			}
		}
		status, _ := r.as(caller, "PUT", "/binary/upload/"+name+"/"+n.name+"/photo/add", "a photo")
		r.judge("an upload to "+path+"/"+n.name, caller, status, http.StatusCreated, allowed)
		status, _ = r.as(caller, "PATCH", path+"/nothing", `{}`)
		if status != http.StatusNotFound {
			r.Errorf("PATCH %s/nothing as %q: %d", path, caller, status)
		}
	})
}

func (r *rights) checkDeletions(caller string) {
	r.Helper()
	r.each(func(name, path string, may map[policy.Op]right, n note) {
		if there, err := r.app.Set().Store(name).Exists(r.Context(), n.name); err != nil || !there {
			return // an earlier caller was allowed to delete it
		}
		status, _ := r.as(caller, "DELETE", path+"/"+n.name, "")
		r.judge("DELETE "+path+"/"+n.name, caller, status, http.StatusNoContent, may[policy.Delete](caller, n))
	})
}
