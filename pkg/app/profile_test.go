package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/app/command"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/event"
	"belfry/test/kit"
)

const (
	profileRules = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Users: {expose: {}, policy: {get: isOwner, update: isOwner}, schema: users.json}
binaries: {binary: {map: {Users: {documents: {types: [application/pdf]}, picture: {maxSize: 64KiB, types: [image/*]}}}}}
authentication:
  providers: {email: {postValidation: true, skipEmailValidation: true}}
`
	profileSchema = `{"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}}}`

	nameForm, pictureForm = `action="/auth/me/name"`, `action="/auth/me/picture"`
)

// profiled is a belfry, and the browser of a user.
type profiled struct {
	*place
	app     *App
	cookies map[string]string
	headers []string
}

func startProfiled(t *testing.T, text, schema string) *profiled {
	t.Helper()
	p := newPlaceIn(t, map[string]string{"users.json": schema}, text)
	f := &profiled{place: p, cookies: map[string]string{}}
	f.app, _ = p.reloadable()
	f.send("POST", "/auth/email", "application/json",
		`{"register":true,"login":"ada@example.com","password":"a fine password","name":"Ada"}`, http.StatusNoContent)
	return f
}

// send sends a request of the browser, and returns the reply with its text.
func (f *profiled) send(method, path, media, body string, status int, headers ...string) (*http.Response, string) {
	f.Helper()
	req, err := http.NewRequestWithContext(f.Context(), method, "http://"+f.app.HTTPAddress()+path,
		strings.NewReader(body))
	if err != nil {
		f.Fatal(err)
	}
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	for name, value := range f.cookies {
		req.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	for pair := range slices.Chunk(append(slices.Clone(f.headers), headers...), 2) {
		req.Header.Set(pair[0], pair[1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		f.Fatalf("%s %s: %d, want %d: %s, %v", method, path, res.StatusCode, status, text, err)
	}
	for _, c := range res.Cookies() {
		if f.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(f.cookies, c.Name)
		}
	}
	return res, string(text)
}

// leads sends a form, and checks where it leads to.
func (f *profiled) leads(path, media, body, to string) {
	f.Helper()
	res, _ := f.send("POST", path, media, body, http.StatusSeeOther)
	if got := res.Header.Get("Location"); got != to {
		f.Errorf("%s leads to %s, want %s", path, got, to)
	}
}

func (f *profiled) renames(name, to string) {
	f.Helper()
	f.leads("/auth/me/name", "application/x-www-form-urlencoded", url.Values{"name": {name}}.Encode(), "/account?"+to)
}

func (f *profiled) uploads(content, to string) {
	f.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreatePart(textproto.MIMEHeader{"Content-Type": {"image/jpeg"},
		"Content-Disposition": {`form-data; name="file"; filename="ada.jpg"`}})
	if err == nil {
		_, err = part.Write([]byte(content))
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		f.Fatal(err)
	}
	f.leads("/auth/me/picture", form.FormDataContentType(), body.String(), "/account?"+to)
}

func (f *profiled) removes(hash, to string) {
	f.Helper()
	f.leads("/auth/me/picture", "application/x-www-form-urlencoded", "hash="+hash, "/account?"+to)
}

// shows requires texts of a page, and with ! that it lacks them. It returns the page.
func (f *profiled) shows(path string, texts ...string) string {
	f.Helper()
	_, page := f.send("GET", path, "", "", http.StatusOK)
	for _, text := range texts {
		if lacks, not := strings.CutPrefix(text, "!"); strings.Contains(page, lacks) == not {
			f.Errorf("%s: %q:\n%s", path, text, page)
		}
	}
	return page
}

type profiledUser struct {
	UUID, Name, Nick string
	Picture          []struct{ Hash, Name, Mimetype string }
}

func (f *profiled) user() (u profiledUser) {
	f.Helper()
	_, text := f.send("GET", "/auth/me", "", "", http.StatusOK)
	if err := json.Unmarshal([]byte(text), &u); err != nil {
		f.Fatal(err)
	}
	return u
}

// awaitUpdate waits for the event of an update of the user, by that user and over HTTP, that has a text.
func (f *profiled) awaitUpdate(uuid, text string) {
	f.Helper()
	kit.WaitUntil(f, func() error {
		subject := event.Subject(event.StoreUpdated, "Users", uuid)
		last, err := eventlog.Last(f.Context(), f.app.Bus().Conn(), subject)
		if err != nil {
			return err
		}
		e, err := event.Decode(last.Data)
		if err == nil && (!strings.Contains(string(e.Object), text) || e.Actor == nil || *e.Actor != uuid ||
			e.Origin != event.OriginHTTP) {
			err = fmt.Errorf("the event is %s", last.Data)
		}
		return err
	})
}

// portrait is a picture of a width.
func portrait(t *testing.T, width int) string {
	t.Helper()
	var picture bytes.Buffer
	if err := jpeg.Encode(&picture, image.NewGray(image.Rect(0, 0, width, 200)), nil); err != nil {
		t.Fatal(err)
	}
	return picture.String()
}

// A user edits their name and their picture with forms that need no script. Each change is an update of the user like
// any other.
func TestUsersEditTheirNameAndPicture(t *testing.T) {
	f := startProfiled(t, profileRules, profileSchema)
	uuid := f.user().UUID
	kit.WaitFor(t, "the address is copied into the user", func() bool {
		_, text := f.send("GET", "/auth/me", "", "", http.StatusOK)
		return strings.Contains(text, `"idents"`)
	})
	f.shows("/account", nameForm, pictureForm, `value="Ada"`, `accept="image/*"`, "at most 64 KB", "!Remove the picture")
	f.renames("  Ada Lovelace ", "outcome=name-set")
	f.shows("/account?outcome=name-set", "Your name is saved.", `value="Ada Lovelace"`, ">Ada Lovelace<")
	f.awaitUpdate(uuid, "Lovelace")

	f.uploads(portrait(t, 600), "outcome=picture-set")
	first := f.user().Picture
	if len(first) != 1 || first[0].Mimetype != "image/jpeg" || first[0].Name != "ada.jpg" {
		t.Fatalf("the picture %+v", first)
	}
	thumb := "/binary/Users/" + uuid + "/picture/0?thumb=90x90"
	page := f.shows("/account?outcome=picture-set", "Your picture is saved.", `src="`+thumb+`"`, "Remove the picture")
	if strings.Contains(page, `<form method="post" action="/auth/me/picture" enctype="multipart/form-data" data-`) {
		t.Error("the form has a script")
	}
	if _, picture := f.send("GET", thumb, "", "", http.StatusOK); len(picture) == 0 {
		t.Error("there is no thumbnail")
	}
	f.uploads(portrait(t, 500), "outcome=picture-set")
	second := f.user().Picture
	if len(second) != 1 || second[0].Hash == first[0].Hash {
		t.Fatalf("the second picture %+v", second)
	}
	f.removes(first[0].Hash, "form=picture&reason=gone") // another tab shows it
	f.removes(second[0].Hash, "outcome=picture-removed")
	if left := f.user(); len(left.Picture) != 0 || left.Name != "Ada Lovelace" {
		t.Errorf("the user is %+v", left)
	}
	f.renames("", "outcome=name-set")
	if name := f.user().Name; name != "" {
		t.Errorf("the name is %q", name)
	}
	f.shows("/account", ">ada@example.com<", `name="name" autocomplete="name" maxlength="200" value=""`)
}

// Values that are refused lead back to their form, with the reason and with what was entered.
func TestRefusedValuesLeadBackToTheFormOfTheProfile(t *testing.T) {
	f := startProfiled(t, profileRules, profileSchema)
	long := `<b>Ada</b> ` + strings.Repeat("x", 20)
	f.renames(long, "form=name&reason=name")
	page := f.shows("/account?form=name&reason=name", "This name is not accepted: must have at most",
		"&lt;b&gt;Ada&lt;/b&gt; xxxx", "!<b>Ada")
	if strings.Index(page, `role="alert"`) < strings.Index(page, `id="profile"`) {
		t.Error("the problem is not at the form")
	}
	f.shows("/account?form=name&reason=name", "This name is not accepted.", `value="Ada"`) // once
	f.headers = []string{"Accept-Language", "de"}
	f.renames(long, "form=name&reason=name")
	f.shows("/account?form=name&reason=name", "Der Name ist zu lang.", "!must have", "Ihr Profil", "Bild speichern")
	f.headers = nil

	f.leads("/auth/me/name", "application/x-www-form-urlencoded", "nick=x", "/account?form=name&reason=name")
	f.leads("/auth/me/name", "application/x-www-form-urlencoded", strings.Repeat("x", 70<<10), "/account?reason=invalid")
	f.leads("/auth/me/name", "application/x-www-form-urlencoded", "name=Ad%E4", "/account?reason=invalid") // Latin-1
	f.uploads("%PDF-1.7 no picture", "form=picture&reason=type")
	f.shows("/account?form=picture&reason=type", "Files of this type are not accepted")
	f.uploads(portrait(t, 100)+strings.Repeat("x", 64<<10), "form=picture&reason=large")
	f.uploads(portrait(t, 100)+strings.Repeat("x", 12<<20), "form=picture&reason=large")
	f.shows("/account?form=picture&reason=large", "Choose a smaller picture")
	f.leads("/auth/me/picture", "text/plain", "x", "/account?form=picture&reason=picture")
	f.leads("/auth/me/picture", "multipart/form-data; boundary=b",
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"\"\r\n\r\n\r\n--b--\r\n",
		"/account?form=picture&reason=picture")
	f.shows("/account?form=picture&reason=picture", "choose a file first")
	f.removes("", "form=picture&reason=gone")
	if u := f.user(); u.Name != "Ada" || len(u.Picture) != 0 {
		t.Errorf("the user is %+v", u)
	}
}

// A form gives no right that the API does not give, and is shown only to who has the right.
func TestFormsOfTheProfileHaveTheRightsOfTheAPI(t *testing.T) {
	const both = "policy: {get: isOwner, update: isOwner}"
	for _, c := range []struct {
		name, from, to  string
		named, pictured bool
		rename, upload  string // where the forms lead to; "": they do not exist
	}{
		{"nobody updates", both, `policy: {get: isOwner, update: "false"}`, false, false, "denied", "denied"},
		{"some update", both, `policy: {get: isOwner, update: user.role == 'editor'}`, false, false, "denied", "denied"},
		{"after a second factor", both, `policy: {get: isOwner, update: session.aal == 2}`, false, false, "step-up",
			"step-up"},
		{"no name", both, both + `, fields: {name: {write: "user == null || user.role == 'editor'"}}`, false, true, "denied", "ok"},
		{"a name of programs", both, both + ", readOnly: [name]", false, true, "", "ok"},
		{"a private name", both, both + ", private: [name]", false, true, "", "ok"},
		{"no update over HTTP", "expose: {}", "expose: {restrict: {update: true}}", false, false, "", ""},
		{"several names", both, both + ", title: [name, nick]", false, true, "", "ok"},
		{"no uploads", "{map:", "{expose: {restrict: {create: true}}, map:", true, false, "ok", "denied"},
		{"no properties", "map: {Users: {documents: {types: [application/pdf]}, picture: {maxSize: 64KiB, types: [image/*]}}}",
			"maxSize: 1MiB", true, false, "ok", ""},
		{"no deletions", "{map:", "{expose: {restrict: {delete: true}}, map:", true, true, "ok", "ok"},
		{"no pictures", "types: [image/*]", "types: [text/plain]", true, false, "ok", ""},
		{"hidden pictures", both, both + `, fields: {picture: {read: "user.role == 'editor'"}}`, true, false, "ok",
			"denied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := startProfiled(t, strings.Replace(profileRules, c.from, c.to, 1), profileSchema)
			page := f.shows("/account", "Sessions")
			if named, pictured := strings.Contains(page, nameForm), strings.Contains(page, pictureForm); named != c.named ||
				pictured != c.pictured {
				t.Errorf("a form for the name: %t, for the picture: %t:\n%s", named, pictured, page)
			}
			before := f.user()
			for form, outcome := range map[string]string{"name": c.rename, "picture": c.upload} {
				to := map[string]string{"denied": "form=" + form + "&reason=denied", "ok": "outcome=" + form + "-set",
					"step-up": "form=" + form + "&reason=step-up"}[outcome]
				switch {
				case outcome == "":
					f.send("POST", "/auth/me/"+form, "application/x-www-form-urlencoded", "x=1", http.StatusNotFound)
				case form == "name":
					f.renames("Eve", to)
				default:
					f.uploads(portrait(t, 90), to)
				}
			}
			now := f.user()
			if (now.Name != before.Name) != (c.rename == "ok") || (len(now.Picture) == 1) != (c.upload == "ok") {
				t.Fatalf("the user was %+v, and is %+v", before, now)
			}
			if c.upload != "ok" {
				return
			}
			keeps := c.name == "no deletions"
			if strings.Contains(f.shows("/account"), "Remove the picture") == keeps {
				t.Errorf("a form to remove it: %t", !keeps)
			}
			if f.removes(now.Picture[0].Hash, map[bool]string{true: "form=picture&reason=denied",
				false: "outcome=picture-removed"}[keeps]); (len(f.user().Picture) == 1) != keeps {
				t.Error("the picture is kept, or not")
			}
		})
	}
}

// The name is the title of users, if they have one. The picture is in a property that takes nothing else, if there is
// one.
func TestTheProfileFollowsTheConfiguration(t *testing.T) {
	f := startProfiled(t, strings.NewReplacer("policy:", "title: [nick], policy:", "types: [application/pdf]", "maxSize: 1MiB",
		"binary: {", "binary: {thumbs: [], ").Replace(profileRules), profileSchema)
	f.renames("Countess", "outcome=name-set")
	f.uploads(portrait(t, 90), "outcome=picture-set")
	if u := f.user(); u.Nick != "Countess" || u.Name != "Ada" || len(u.Picture) != 1 {
		t.Errorf("the user is %+v", u)
	}
	f.shows("/account", ">Countess<", "!<img src=", "Remove the picture", "Another picture")

	f = startProfiled(t, strings.Replace(profileRules, ", types: [image/*]", "", 1), profileSchema) // it takes any file
	f.uploads("%PDF-1.7 no picture", "form=picture&reason=type")
	f.uploads(portrait(t, 90), "outcome=picture-set")
}

// Only a complete session of the user's browser edits the user.
func TestTheProfileNeedsACompleteSession(t *testing.T) {
	text := strings.Replace(profileRules, "  providers:", "  mfa: {policy: optional}\n  providers:", 1)
	f := startProfiled(t, text, profileSchema)
	const form = "application/x-www-form-urlencoded"
	f.send("POST", "/auth/me/name", form, "name=Eve", http.StatusForbidden, "Sec-Fetch-Site", "cross-site")
	f.send("POST", "/auth/me/picture", form, "hash=0", http.StatusForbidden, "Sec-Fetch-Site", "cross-site")
	uuid, session := f.user().UUID, f.cookies
	_, key := f.send("POST", "/auth/keys", "application/json", `{"name":"k","password":"a fine password"}`,
		http.StatusCreated)
	refused := func(reason string) {
		f.Helper()
		f.renames("Eve", "form=name&reason="+reason)
		f.uploads(portrait(t, 90), "form=picture&reason="+reason)
		f.removes("0", "form=picture&reason="+reason)
		f.shows("/account", "!"+nameForm, "!"+pictureForm)
	}
	refusedBefore := func(name, picture string) {
		f.Helper()
		f.renames("Eve", name)
		f.uploads(portrait(t, 90), picture)
		f.removes("0", picture)
		f.shows("/account", "!"+nameForm, "!"+pictureForm)
	}
	f.cookies = map[string]string{}
	refusedBefore("reason=ended", "form=picture&reason=ended")
	f.headers = []string{"Authorization", "Bearer " + field(key, "token")}
	refusedBefore("reason=refused", "form=picture&reason=denied")
	f.headers, f.cookies = nil, session

	f.reload(f.app, strings.Replace(text, "policy: optional", "policy: required", 1))
	refused("step-up")
	f.reload(f.app, text)
	f.shows("/account", nameForm, pictureForm)
	if u := f.user(); u.Name != "Ada" || len(u.Picture) != 0 {
		t.Errorf("the user is %+v", u)
	}
	f.mustAsk(command.UserRequest{Act: command.DisableUser, User: uuid})
	refusedBefore("reason=ended", "form=picture&reason=ended")
}

// What a user has typed is shown at the form that refused it, and neither at a later one nor to the next user of the
// browser.
func TestWhatWasTypedIsShownOnceOrNotAtAll(t *testing.T) {
	f := startProfiled(t, profileRules, profileSchema)
	const again, refused = "/account?form=name&reason=name", "form=name&reason=name"
	earlier, most := strings.Repeat("earlier", 10), strings.Repeat("名", 200)
	f.renames(most, refused)
	f.shows(again, `value="`+most+`"`)

	f.renames(earlier, refused)
	f.renames(strings.Repeat("x", 1000), refused) // the browser has not opened the page in between
	f.shows(again, "!"+earlier, `value="Ada"`)

	typed := func() bool { return f.cookies["belfry-form"] != "" }
	f.renames(earlier, refused)
	if !typed() {
		t.Fatal("nothing is kept")
	}
	f.send("DELETE", "/auth", "", "", http.StatusNoContent)
	if typed() {
		t.Error("after the logout the browser has what the user has typed")
	}
	f.cookies["belfry-form"] = "ZWFybGllcg"
	f.send("POST", "/auth/email", "application/json", `{"login":"ada@example.com","password":"a fine password"}`,
		http.StatusNoContent)
	if typed() {
		t.Error("after the login the browser has what somebody has typed before")
	}
}
