package app

import (
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"belfry/config"
	"belfry/pkg/app/command"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/test/kit"
)

// cityFile is a database of a few networks.
const cityFile = "../account/places/testdata/GeoLite2-City-Test.mmdb"

// The list of sessions and the activity have the device and the place of each login, as far as they are known, and a
// reload reads the database of places again.
func TestSessionsAndActivityHaveDevicesAndPlaces(t *testing.T) {
	data, err := os.ReadFile(cityFile)
	if err != nil {
		t.Fatal(err)
	}
	text := "listen: 127.0.0.1:0\nbus: {listen: \"\"}\nproxies: [127.0.0.0/8]\n" +
		"authentication: {places: city.mmdb, providers: {email: {postValidation: true, skipEmailValidation: true}}}\n"
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	p.write("city.mmdb", string(data))
	p.config = p.load(text)
	a, _ := p.reloadable()
	ask := func(method, path, token, address, agent, body string) string {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+a.HTTPAddress()+path,
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"X-Forwarded-For": {address}, "User-Agent": {agent},
			"Prefer": {"return=representation"}, "Content-Type": {"application/json"}}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		status, reply := p.send(req)
		if status != http.StatusOK {
			t.Fatalf("%s %s: %d: %s", method, path, status, reply)
		}
		return reply
	}
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	token := gjson.Get(ask("POST", "/auth/email", "", "89.160.20.112", firefox,
		`{"register":true,"login":"ada@example.com","password":"a fine password"}`), "token").String()
	ask("POST", "/auth/email", "", "10.1.2.3", "curl/8.5.0", `{"login":"ada@example.com","password":"a fine password"}`)
	sessions := func() (all []string) {
		reply := ask("GET", "/auth/sessions", token, "10.1.2.3", "curl/8.5.0", "")
		for _, s := range gjson.Get(reply, "sessions").Array() {
			all = append(all, s.Get("device").String()+" "+s.Get("place").Raw)
		}
		return all
	}
	const first = `Firefox on Linux {"city":"Linköping","country":"Sweden","countryCode":"SE"}`
	want := []string{first, " "}
	kit.WaitFor(t, "the index has both sessions", func() bool { return len(sessions()) == 2 })
	if got := sessions(); !slices.Equal(got, want) {
		t.Errorf("sessions are %q, want %q", got, want)
	}
	kit.WaitFor(t, "the log has both logins", func() bool {
		events := gjson.Get(ask("GET", "/auth/activity", token, "10.1.2.3", "curl/8.5.0", ""),
			`events.#(event=="Auth.LoggedIn")#`).Array()
		return len(events) == 2 && events[1].Get("device").String()+" "+events[1].Get("place").Raw == first &&
			!events[0].Get("place").Exists()
	})

	p.write("city.mmdb", strings.ReplaceAll(string(data), "Linköping", "Stockholms"))
	if changed := p.reload(a, text); !slices.Equal(changed,
		[]string{"authentication.places (" + p.path("city.mmdb") + ")"}) {
		t.Errorf("changed are %q", changed)
	}
	if got := sessions(); !strings.Contains(got[0], "Stockholms") {
		t.Errorf("after the reload sessions are %q", got)
	}
	for name, change := range map[string]func(){
		"not a database in MaxMind's format": func() { p.write("city.mmdb", "places") },
		"expected a readable file":           func() { _ = os.Remove(p.path("city.mmdb")) },
	} {
		change()
		if _, err := command.Reload.Do(t.Context(), p.config, struct{}{}); !errors.Is(err, errs.Invalid) ||
			!strings.Contains(err.Error(), "authentication.places: ") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := sessions(); !strings.Contains(got[0], "Stockholms") {
		t.Errorf("after a refused reload sessions are %q", got)
	}
	p.write("city.mmdb", "places")
	c, err := config.Load(p.path("belfry.yaml"), os.LookupEnv)
	if err == nil {
		err = plan.Check(c)
	}
	if err == nil || !strings.Contains(err.Error(), "authentication.places: the file is not a database") {
		t.Errorf("the check of a wrong file: %v", err)
	}
}
