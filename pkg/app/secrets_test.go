package app

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"belfry/listeners/mapping"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/test/kit"
)

// Users and idents are exported and imported, beside a belfry that serves and without one: who could log in still can.
func TestUsersAndIdentsSurviveAnExportWithSecrets(t *testing.T) {
	const login, password = "ada@example.org", "correct horse battery"
	p := newPlace(t, managed)
	a := p.start()
	p.want(a, "POST", "/auth/email", fmt.Sprintf(`{"login":%q,"password":%q,"register":true}`, login, password),
		http.StatusNoContent)
	kit.WaitUntil(t, func() error { return positioned(a, mapping.Name) })
	export := func(store string, secrets bool) string {
		t.Helper()
		var out bytes.Buffer
		if _, err := command.Export.Do(t.Context(), p.config,
			command.ExportRequest{Store: store, Secrets: secrets, To: &out}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if plain := export("Users", false) + export("Idents", false); strings.Contains(plain, "argon2") ||
		strings.Contains(plain, `"_`) {
		t.Errorf("an export without --secrets has some: %s", plain)
	}
	served := export("Users", true)
	if !strings.Contains(served, "$argon2id$") {
		t.Errorf("an export with secrets has none: %s", served)
	}
	p.stop(a)
	users, idents := export("Users", true), export("Idents", true)
	if users != served {
		t.Errorf("the exports differ: %s, %s", users, served)
	}

	again := p.fresh(managed)
	a = again.start()
	for _, one := range []struct{ store, text string }{{"Users", users}, {"Idents", idents}} {
		for _, want := range []command.Imported{{Read: 1, Created: 1}, {Read: 1, Existing: 1}} {
			r, err := command.Import.Do(t.Context(), again.config,
				command.ImportRequest{Store: one.store, From: strings.NewReader(one.text)})
			if err != nil || !r.Clean() || r.Created != want.Created || r.Existing != want.Existing {
				t.Errorf("%s: %+v, %v", one.store, r, err)
			}
		}
	}
	if status, _ := again.logIn(a, login, password); status != http.StatusOK {
		t.Errorf("after the import a login is %d", status)
	}
	if status, _ := again.logIn(a, login, "wrong"); status != http.StatusForbidden {
		t.Errorf("after the import a wrong password is %d", status)
	}
	kit.WaitUntil(t, func() error { return positioned(a, mapping.Name) })
	again.stop(a)
	if n := again.differences(); n > 0 {
		t.Errorf("%d differences", n)
	}
	r, err := command.Import.Do(t.Context(), again.config,
		command.ImportRequest{Store: "Users", Update: true, From: strings.NewReader(users + "\nnonsense\n{}\n")})
	if err != nil || r.Updated != 1 || len(r.Rejected) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := command.Import.Do(t.Context(), again.config,
		command.ImportRequest{Store: "Sessions", From: strings.NewReader("{}")}); !errors.Is(err, errs.Invalid) {
		t.Errorf("sessions are imported: %v", err)
	}
}
