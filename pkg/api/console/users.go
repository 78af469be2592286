package console

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/keys"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Users are the options of the view Users.
type Users struct {
	Accounts Accounts
	Store    string // the name of the user store
	Mails    bool   // mails can be sent to users
}

// Accounts manages users on behalf of the caller in the context. *admin.Admin does.
type Accounts interface {
	Accounts(ctx context.Context, after []byte, limit int) (page []admin.Account, next []byte, err error)
	FindUser(ctx context.Context, who string) (store.Stored, error)
	AccountDetails(ctx context.Context, user store.Stored) (admin.Account, error)
	CreateUser(ctx context.Context, u admin.NewUser) (store.Stored, error)
	SetAdmin(ctx context.Context, uuid string, admin bool) (store.Stored, error)
	SetDisabled(ctx context.Context, uuid string, disabled bool) (store.Stored, error)
	EndSessions(ctx context.Context, uuid string) (store.Stored, error)
	EndSession(ctx context.Context, user, id string) error
	SendRecovery(ctx context.Context, uuid, address string) (string, error)
	IssueKey(ctx context.Context, user store.Stored, k keys.New) (keys.Info, string, error)
	EndKey(ctx context.Context, user, id string) error
	ResetFactors(ctx context.Context, uuid string) (store.Stored, error)
	UnlinkFor(ctx context.Context, user, ident string) error
	UndoDeletionFor(ctx context.Context, uuid string) (store.Stored, error)
	KeepChangesFor(ctx context.Context, uuid string) (store.Stored, error)
}

var _ Accounts = (*admin.Admin)(nil)

const (
	usersPage = 50  // users of a page
	maxName   = 100 // bytes of a name that is shown
)

type usersView struct {
	Users
	names *namer
}

func (c *Console) users(o *Users) view {
	if o == nil {
		return view{}
	}
	v := &usersView{*o, c.names}
	const one = "/users/:" + httpkit.UUIDParam
	return view{name: "users", title: "Users", group: dataGroup, routes: []route{
		get("/users", v.list), post("/users", v.create),
		get("/users/new", v.newForm),
		get(one, v.show),
		post(one+"/admin", v.setAdmin), post(one+"/disabled", v.setDisabled),
		post(one+"/sessions", v.act(v.Accounts.EndSessions, "All sessions and API keys of the user have ended.")),
		post(one+"/sessions/:id", v.actOn("id", v.Accounts.EndSession, "The session has ended.")),
		post(one+"/recovery", v.sendRecovery), post(one+"/idents/:ident", v.unlink),
		post(one+"/factors", v.resetFactors),
		post(one+"/deletion", v.act(v.Accounts.UndoDeletionFor, "The account is kept.")),
		post(one+"/changes", v.act(v.Accounts.KeepChangesFor, "The changes of address can no longer be undone.")),
		post(one+"/keys", v.createKey),
		post(one+"/keys/:id", v.actOn("id", v.Accounts.EndKey, "The API key is revoked.")),
	}}
}

// userRow is a row of the list.
type userRow struct {
	admin.Account
	Name, Created string
	Logins        []string // idents, as the user's array has them
}

type userList struct {
	Query, Problem string
	Rows           []userRow
	Next           string // the cursor of the next page; "" for none
	First          bool   // this is the first page
}

// list shows a page of users, or redirects to the user that the query names.
func (v *usersView) list(r *request) error {
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	l := userList{Query: strings.TrimSpace(r.Query("q")), First: r.Query("after") == ""}
	status := http.StatusOK
	if l.Query != "" {
		user, err := v.Accounts.FindUser(ctx, l.Query)
		switch errs.KindOf(err) {
		case errs.NotFound, errs.Denied:
			l.Problem, status = "There is no such user: look for a whole e-mail address, or the uuid of a user or "+
				"an ident.", http.StatusNotFound
		default:
			if err != nil {
				return err
			}
			r.seeOther(pathOf("users", user.UUID))
			return nil
		}
	}
	after, err := base64.RawURLEncoding.DecodeString(r.Query("after"))
	if err != nil {
		return errs.New(errs.Invalid, "after: invalid; start again without it")
	}
	if l.First {
		after = nil
	}
	page, next, err := v.Accounts.Accounts(ctx, after, usersPage)
	if err != nil {
		return err
	}
	for _, a := range page {
		l.Rows = append(l.Rows, v.rowOf(a))
	}
	l.Next = base64.RawURLEncoding.EncodeToString(next)
	return r.page(status, "users", "Users", l)
}

// rowOf returns a user as the list shows them.
func (v *usersView) rowOf(a admin.Account) userRow {
	row := userRow{Account: a}
	row.Name = nameIn(a.User)
	if v.names.users() == v.Store {
		row.Name = cmp.Or(nameOf(v.names.stores[v.Store], a.User), row.Name)
	}
	row.Created, _ = object.Text(object.Field(a.User, "created"))
	row.Logins = loginsIn(object.Field(a.User, "idents"))
	return row
}

// loginsIn returns the idents of the array of a user.
func loginsIn(array []byte) (logins []string) {
	var idents []struct {
		UUID string `json:"uuid"`
	}
	_ = json.Unmarshal(array, &idents) // the field may be absent
	for _, i := range idents {
		logins = append(logins, i.UUID)
	}
	return logins
}

// nameIn returns the name that a user has.
func nameIn(user []byte) string {
	for _, field := range userNames {
		if text, ok := object.Text(object.Field(user, field)); ok && text != "" {
			return shorten(text, maxName)
		}
	}
	return ""
}

// userPage is the data of a user's page.
type userPage struct {
	userRow
	Store     string // the name of the user store
	Self      bool   // the user is the admin who sees the page
	Mails     bool
	Machine   bool     // the user has no ident
	Addresses []string // of idents by e-mail
	JSON      string   // the fields of the user

	NewKey  *keys.Info // that was just created
	Token   string     // of it
	KeyForm keyForm
}

func (v *usersView) show(r *request) error {
	ctx, user, err := v.user(r)
	if err != nil {
		return err
	}
	return v.showUser(ctx, r, user, http.StatusOK, func(*userPage) {})
}

// user returns the user whom a path names.
func (v *usersView) user(r *request) (context.Context, store.Stored, error) {
	ctx, err := r.Call()
	if err != nil {
		return nil, store.Stored{}, err
	}
	uuid, err := r.UUID()
	if err != nil {
		return nil, store.Stored{}, err
	}
	user, err := v.Accounts.FindUser(ctx, uuid)
	return ctx, user, err
}

func (v *usersView) showUser(ctx context.Context, r *request, user store.Stored, status int,
	with func(*userPage)) error {
	a, err := v.Accounts.AccountDetails(ctx, user)
	if err != nil {
		return err
	}
	p := userPage{userRow: v.rowOf(a), Store: v.Store, Self: user.UUID == r.Session.User.UUID, Mails: v.Mails,
		Machine: len(a.Idents) == 0}
	for _, i := range a.Idents {
		if address, isEmail := strings.CutSuffix(i.UUID, "_email"); isEmail {
			p.Addresses = append(p.Addresses, address)
		}
	}
	p.JSON = indent(a.User)
	with(&p)
	return r.page(status, "users_one", cmp.Or(p.Name, firstOf(p.Addresses), user.UUID), p)
}

func firstOf(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}
