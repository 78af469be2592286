package app

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/account/keys"
	"belfry/pkg/app/command"
	"belfry/pkg/client"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/test/kit"
)

// stream returns the lines of a stream of events until one begins with a prefix, which it returns last.
func (p *place) stream(a *App, after, until string) string {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), kit.Limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.HTTPAddress()+"/events?lastEventId="+after,
		nil)
	if err != nil {
		p.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var all strings.Builder
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), until) {
			return all.String()
		}
	}
	p.Fatalf("the stream of events has ended: %s", all.String())
	return ""
}

// A client has received an event of a write that the restore undoes. The restored log gets further events, so the
// position of the client is in it, but is that of another event: the client must start over.
func TestAClientThatHasSeenWhatARestoreUndoesBeginsAnew(t *testing.T) {
	text := strings.Replace(books, "expose: {list: true,", "expose: {list: true, events: true,", 1)
	p := newPlace(t, text)
	a := p.start()
	book := func(p *place, a *App, uuid string) {
		p.want(a, "POST", "/books", fmt.Sprintf(`{"uuid":%q,"title":"T"}`, uuid), http.StatusCreated)
	}
	book(p, a, "before")
	p.backup()
	book(p, a, "undone")
	events := p.stream(a, "0", `data: {"id":`)
	for !strings.Contains(events, "undone") {
		id := events[strings.LastIndex(events, "id: ")+4:]
		id, _, _ = strings.Cut(id, "\n")
		events = p.stream(a, id, `data: {"id":`)
	}
	id := events[strings.LastIndex(events, "\nid: ")+5:]
	id, _, _ = strings.Cut(id, "\n")
	p.stop(a)

	again := p.fresh(text)
	again.restore(p)
	a = again.start()
	for i := range 5 {
		book(again, a, fmt.Sprint("new", i))
	}
	if events := again.stream(a, id, "event: "); !strings.Contains(events, "event: reset") {
		t.Errorf("the client continues: %s", events)
	}
}

// makeKey makes an API key of a user.
func (p *place) makeKey(login string) *command.UserReply {
	p.Helper()
	key, err := command.Users.Do(p.Context(), p.config,
		command.UserRequest{Act: command.CreateKey, User: login, Key: keys.New{Name: "deploy"}})
	if err != nil {
		p.Fatal(err)
	}
	return key
}

// Who could log in when the backup was made can do so after the restore: with the password, the session and the API key
// of that time, also if the session has ended since.
func TestUsersAndSessionsAreThoseOfTheBackup(t *testing.T) {
	const login, password = "ada@example.org", "correct horse battery"
	revoke := func(p *place, key *command.UserReply) {
		p.mustAsk(command.UserRequest{Act: command.RevokeKey, User: login, Revoked: key.Key.ID})
	}
	p := newPlace(t, managed)
	a := p.start()
	p.want(a, "POST", "/auth/email", fmt.Sprintf(`{"login":%q,"password":%q,"register":true}`, login, password),
		http.StatusNoContent)
	_, session := p.logIn(a, login, password)
	key, revoked := p.makeKey(login), p.makeKey(login)
	revoke(p, revoked)
	p.backup()
	later := p.makeKey(login)
	revoke(p, key)
	p.mustAsk(command.UserRequest{Act: command.SetPassword, User: login, Password: "a better password"})
	for what, token := range map[string]string{"the session": session, "the key": key.Token} {
		if p.me(a, token) == http.StatusOK {
			t.Fatalf("%s has not ended", what)
		}
	}
	p.stop(a)

	again := p.fresh(managed)
	again.restore(p)
	a = again.start()
	if status, _ := again.logIn(a, login, password); status != http.StatusOK {
		t.Errorf("the password of the backup: %d", status)
	}
	if status, _ := again.logIn(a, login, "a better password"); status == http.StatusOK {
		t.Error("a password that was set after the backup is valid")
	}
	for what, c := range map[string]struct {
		token string
		want  int
	}{
		"a session of the backup":       {session, http.StatusOK},
		"a key that was revoked since":  {key.Token, http.StatusOK},
		"a key that was revoked before": {revoked.Token, http.StatusUnauthorized},
		"a key that was created since":  {later.Token, http.StatusUnauthorized},
	} {
		if status := again.me(a, c.token); status != c.want {
			t.Errorf("%s: %d, want %d", what, status, c.want)
		}
	}
	revoke(again, key)
	if status := again.me(a, key.Token); status != http.StatusUnauthorized {
		t.Errorf("a key that is revoked after the restore: %d", status)
	}
}

// A request whose effect is in the backup is not executed again; one whose effect the restore undoes is.
func TestIdempotencyKeysAreThoseOfTheBackup(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	ctx := t.Context()
	authors := client.New(a.Bus().Conn()).Store("Authors")
	before, err := authors.Save(ctx, object.Object{"name": []byte(`"Lem"`)}, client.WithKey("before"))
	if err != nil {
		t.Fatal(err)
	}
	gone, err := authors.Save(ctx, object.Object{"name": []byte(`"Gone"`)}, client.WithKey("gone"))
	if err != nil {
		t.Fatal(err)
	}
	if err := authors.Delete(ctx, gone.UUID(), client.WithKey("deleted")); err != nil {
		t.Fatal(err)
	}
	p.backup()
	if _, err := authors.Save(ctx, object.Object{"name": []byte(`"Undone"`)}, client.WithKey("after")); err != nil {
		t.Fatal(err)
	}
	p.stop(a)

	again := p.fresh(books)
	again.restore(p)
	a = again.start()
	authors = client.New(a.Bus().Conn()).Store("Authors")
	repeated, err := authors.Save(ctx, object.Object{"name": []byte(`"Lem"`)}, client.WithKey("before"))
	if err != nil || repeated.UUID() != before.UUID() || repeated.Revision != before.Revision {
		t.Errorf("repeated: %+v, %v; want %+v", repeated, err, before)
	}
	// The tombstone is in the backup of a folder.
	if err := authors.Delete(ctx, gone.UUID(), client.WithKey("deleted")); err != nil {
		t.Errorf("a deletion that is repeated: %v", err)
	}
	if err := authors.Delete(ctx, gone.UUID(), client.WithKey("another")); errs.KindOf(err) != errs.NotFound {
		t.Errorf("a deletion of what is deleted: %v", err)
	}
	made, err := authors.Save(ctx, object.Object{"name": []byte(`"Undone"`)}, client.WithKey("after"))
	if err != nil {
		t.Errorf("a request that the restore undoes is repeated: %+v, %v", made, err)
	}
}

// A mapping is added; its arrays are being filled when the backup is made, or have not been begun. The restore fills
// them.
func TestAMappingThatIsBeingFilledIsFilledByTheRestore(t *testing.T) {
	plain := strings.Replace(books, "    map: {Authors: {key: author, target: books, fields: title, cascade: true}}\n",
		"", 1)
	p := newPlace(t, plain)
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	for i := range 20 {
		p.want(a, "POST", "/books", fmt.Sprintf(`{"uuid":"b%d","author":"lem","title":"T"}`, i), http.StatusCreated)
	}
	p.backup()
	p.stop(a)
	p.fresh(books).correctsOneTarget(p)
}

// A server that stops in a backup that a command has requested ends it first, and nothing alarms afterwards.
func TestAStopEndsABackupAndIsNoFailure(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	began, requested := make(chan struct{}, 1), make(chan error, 1)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case began <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	defer slow.Close()
	p := newPlace(t, books+"backup: {s3: {bucket: b, region: here, endpoint: '"+slow.URL+"'}}\n")
	a := p.start()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	go func() {
		_, err := command.Backup.Do(context.WithoutCancel(t.Context()), p.config, command.BackupRequest{})
		requested <- err
	}()
	<-began
	p.stop(a)
	if err := <-requested; err == nil {
		t.Error("the backup succeeds")
	}
	a = p.start()
	kit.WaitFor(t, "the state", func() bool { return a.wiring.backups.Last.Load() != nil })
	if state := a.wiring.backups.Last.Load(); state.Error != "" || state.Lease != nil || len(state.Recent) > 0 {
		t.Errorf("%+v", state)
	}
}

// The command prints what the server replies: the place, and why it can't be used.
func TestABackupByTheServerSaysWhyItHasFailed(t *testing.T) {
	p := newPlace(t, books)
	p.start()
	_, err := command.Backup.Do(t.Context(), p.config,
		command.BackupRequest{To: &config.BackupPlace{Folder: p.path("belfry.yaml")}})
	if err == nil || !strings.Contains(err.Error(), "the destination of backups, ") ||
		!strings.Contains(err.Error(), "can't be created") {
		t.Errorf("a file as the place: %v", err)
	}
	if !strings.Contains(p.logged.String(), "not a directory") {
		t.Errorf("the log does not say why: %s", p.logged)
	}
}
