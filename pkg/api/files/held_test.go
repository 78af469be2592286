package files_test

import (
	"io"
	"net/http"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/api/apitest"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/kit"
)

// A user can keep an upload open for hours, and end it after they have lost the right
// to make it.
func TestAnUploadIsJudgedAgainWhenItHasArrived(t *testing.T) {
	for name, c := range map[string]struct {
		path      string // of the upload
		anonymous bool
		meanwhile func(l *library, users *store.Store, token, user string)
		status    int
	}{
		"nothing happens":        {"Edited/emma", false, func(*library, *store.Store, string, string) {}, 201},
		"nobody is logged in":    {"Books/emma", true, func(*library, *store.Store, string, string) {}, 201},
		"a logout":               {"Edited/emma", false, logOut, 401},
		"a logout, and no rules": {"Books/emma", false, logOut, 401},
		"the user is deleted": {"Edited/emma", false, func(l *library, users *store.Store, _, user string) {
			l.Must(users.Delete(l.Context(), user, 0))
		}, 401},
		"the user loses the right": {"Edited/emma", false, func(l *library, users *store.Store, _, user string) {
			_, err := users.Update(l.Context(), object.Object{"editor": []byte("null")},
				store.UpdateOptions{UUID: user, Patch: true})
			l.Must(err)
		}, 403},
		"the object is closed": {"Edited/emma", false, func(l *library, _ *store.Store, _, _ string) {
			_, err := l.set.Store("Edited").Update(l.Context(), object.Object{"closed": []byte("true")},
				store.UpdateOptions{UUID: "emma"})
			l.Must(err)
		}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var users *store.Store
			l := startLibrary(t, func(o *account.Options) { users = o.Users })
			token := l.Register("ada@example.com", "a fine password")
			var me struct{ UUID string }
			l.Me(token).Want(200).JSON(&me)
			_, err := users.Update(l.Context(), object.Object{"editor": []byte("true")},
				store.UpdateOptions{UUID: me.UUID})
			l.Must(err)

			body, client := io.Pipe()
			req, err := http.NewRequestWithContext(t.Context(), "PUT", l.URL+"/files/upload/"+c.path+"/covers/add",
				body)
			l.Must(err)
			if !c.anonymous {
				req.Header.Set("Cookie", "belfry="+token)
			}
			replies := make(chan apitest.Reply)
			go func() {
				resp, err := l.Server.Client().Do(req)
				if err != nil {
					t.Error(err)
					close(replies)
					return
				}
				replies <- l.Read(resp)
			}()
			_, err = io.WriteString(client, "the first half")
			l.Must(err)
			kit.WaitFor(t, "the upload has begun", func() bool { return l.stages() > 0 })
			c.meanwhile(l, users, token, me.UUID)
			_, err = io.WriteString(client, ", and the second")
			l.Must(err)
			l.Must(client.Close())
			reply, ok := <-replies
			if !ok {
				return
			}
			reply.Want(c.status)
			stored, err := l.set.Store(c.path[:len(c.path)-len("/emma")]).Get(t.Context(), "emma")
			l.Must(err)
			if has := object.Field(stored.Body, "covers") != nil; has != (c.status == 201) {
				t.Errorf("the object is %s", stored.Body)
			}
		})
	}
}

func logOut(l *library, _ *store.Store, token, _ string) {
	l.Helper()
	l.Do("DELETE", "/auth", "", "Cookie", "belfry="+token).Want(204)
}
