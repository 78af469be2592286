package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/sessions"
	"belfry/pkg/httpkit"
	"belfry/pkg/store"
)

// Users are the options of the view Users.
type Users struct {
	Accounts Accounts
	Keys     AllKeys
	Store    string // the name of the user store
	Mails    bool   // mails can be sent to users

	Impersonation bool // admins may see what another user may read
}

// AllKeys lists the API keys of all users. *keys.Keys does.
type AllKeys interface {
	All(ctx context.Context, order keys.Order, after []byte, limit int) (page []keys.OfUser, next []byte, err error)
}

// Accounts manages users on behalf of the caller in the context. *admin.Admin does.
type Accounts interface {
	Accounts(ctx context.Context, after []byte, limit int) (page []admin.Account, next []byte, err error)
	List(ctx context.Context, after []byte, limit int) (page []admin.Account, next []byte, err error)
	Search(ctx context.Context, query, after string, limit int) (page []admin.Account, next string, err error)
	FindUser(ctx context.Context, who string) (store.Stored, error)
	AccountDetails(ctx context.Context, user store.Stored) (admin.Account, error)
	CreateUser(ctx context.Context, u admin.NewUser) (store.Stored, error)
	SetAdmin(ctx context.Context, uuid string, admin bool) (store.Stored, error)
	SetDisabled(ctx context.Context, uuid string, disabled bool) (store.Stored, error)
	EndSessions(ctx context.Context, uuid string) (store.Stored, error)
	EndSession(ctx context.Context, user, id string) error
	SendRecovery(ctx context.Context, uuid, address string) (string, error)
	Invite(ctx context.Context, uuid string) (string, error)
	IssueKey(ctx context.Context, user store.Stored, k keys.New) (keys.Info, string, error)
	EndKey(ctx context.Context, user, id string) error
	ResetFactors(ctx context.Context, uuid string) (store.Stored, error)
	UnlinkFor(ctx context.Context, user, ident string) error
	UndoDeletionFor(ctx context.Context, uuid string) (store.Stored, error)
	KeepChangesFor(ctx context.Context, uuid string) (store.Stored, error)
	Impersonate(ctx context.Context, me *sessions.Session, uuid string) error
	Impersonated(ctx context.Context, me *sessions.Session, uuid string) (admin.Impersonation, error)
	EndImpersonation(ctx context.Context, me *sessions.Session) error
}

var (
	_ Accounts = (*admin.Admin)(nil)
	_ AllKeys  = (*keys.Keys)(nil)
)

// usersTitle is not "Users": stores of users have that name.
const usersTitle = "Manage users"

type usersView struct {
	Users
	names *namer
}

func (c *Console) users(options Options) view {
	o := options.Users
	if o == nil {
		return view{}
	}
	v := &usersView{*o, c.names}
	const one = "/users/:" + httpkit.UUIDParam
	return view{name: "users", title: usersTitle, group: dataGroup, routes: append([]route{
		limitedAs(httpkit.List, get("/users", v.list)), post("/users", v.create),
		get("/users/new", v.newForm), get("/users/keys", v.listKeys),
		get(one, v.show),
		post(one+"/admin", v.setAdmin), post(one+"/disabled", v.setDisabled),
		post(one+"/sessions", v.act(v.Accounts.EndSessions, "All sessions and API keys of the user have ended.")),
		post(one+"/sessions/:id", v.actOn("id", v.Accounts.EndSession, "The session has ended.")),
		post(one+"/recovery", v.sendRecovery), post(one+"/invitation", v.invite), post(one+"/idents/:ident", v.unlink),
		post(one+"/factors", v.resetFactors),
		post(one+"/deletion", v.act(v.Accounts.UndoDeletionFor, "The account is kept.")),
		post(one+"/changes", v.act(v.Accounts.KeepChangesFor, "The changes of address can no longer be undone.")),
		post(one+"/keys", v.createKey),
		post(one+"/keys/:id", v.endKey),
	}, asView{v, options.Objects}.routes()...)}
}

// userPage is the data of a user's page.
type userPage struct {
	userRow
	Store     string // the name of the user store
	Self      bool   // the user is the admin who sees the page
	Mails     bool
	Invitable bool     // the user has neither a password nor logged in, so an invitation can be sent
	Machine   bool     // the user has no ident
	Addresses []string // of idents by e-mail
	JSON      string   // the fields of the user
	As        bool     // the admin may see what the user may read

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
	ctx, uuid, err := r.CallAbout()
	if err != nil {
		return nil, store.Stored{}, err
	}
	user, err := v.Accounts.FindUser(ctx, uuid)
	return ctx, user, err
}

// sent returns the user whom a path names, and the form.
func (v *usersView) sent(r *request) (ctx context.Context, user store.Stored, form url.Values, err error) {
	if ctx, user, err = v.user(r); err == nil {
		form, err = r.Form()
	}
	return ctx, user, form, err
}

func (v *usersView) showUser(ctx context.Context, r *request, user store.Stored, status int,
	with func(*userPage)) error {
	a, err := v.Accounts.AccountDetails(ctx, user)
	if err != nil {
		return err
	}
	p := userPage{userRow: v.rowOf(a), Store: v.Store, Self: user.UUID == r.Session.User.UUID, Mails: v.Mails,
		Machine: len(a.Idents) == 0}
	p.Addresses = addressesOf(a)
	p.Invitable = v.Mails && !a.Disabled && !a.HasPassword && p.LastLogin == "" && len(a.Idents) == 1 &&
		len(p.Addresses) == 1
	p.JSON = indent(a.User)
	p.As = v.Impersonation && !p.Self && !a.Admin && !a.Disabled
	with(&p)
	return r.page(status, "users_one", cmp.Or(p.Name, user.UUID), p)
}

// addressesOf returns the addresses by which a user logs in.
func addressesOf(a admin.Account) (all []string) {
	for _, i := range a.Idents {
		if address, isEmail := strings.CutSuffix(i.UUID, "_email"); isEmail {
			all = append(all, address)
		}
	}
	return all
}

func firstOf(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}
