package command

import (
	"context"
	"encoding/json"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// UserAct is what is done with users.
type UserAct string

// The acts.
const (
	ListUsers   UserAct = "list"
	ShowUser    UserAct = "show"
	CreateUser  UserAct = "create"
	GrantAdmin  UserAct = "admin"
	RevokeAdmin UserAct = "admin --revoke"
	DisableUser UserAct = "disable"
	EnableUser  UserAct = "enable"
	SetPassword UserAct = "password"
	DeleteUser  UserAct = "delete"
	EndSessions UserAct = "end-sessions"
	RecoverUser UserAct = "recover"
	CreateKey   UserAct = "key create"
	RevokeKey   UserAct = "key revoke"
	UnlinkIdent UserAct = "unlink"

	ResetFactors UserAct = "reset-factors"
	UndoDelete   UserAct = "undo-deletion"
	KeepChanges  UserAct = "keep-changes"
)

// UserRequest asks for an act.
type UserRequest struct {
	Act  UserAct `json:"act"`
	By   string  `json:"by,omitempty"`   // the account of the operating system that asks; for events
	User string  `json:"user,omitempty"` // uuid or e-mail address, but not for ListUsers and CreateUser

	After []byte `json:"after,omitempty"` // of ListUsers: Next of the page before

	Password string `json:"password,omitempty"` // of SetPassword and CreateUser

	// Of CreateUser.
	Login     string          `json:"login,omitempty"`
	Fields    json.RawMessage `json:"fields,omitempty"` // an object
	Admin     bool            `json:"admin,omitempty"`
	Validated bool            `json:"validated,omitempty"`
	Machine   bool            `json:"machine,omitempty"`

	Key     account.NewKey `json:"key,omitzero"`      // of CreateKey
	Revoked string         `json:"revoked,omitempty"` // of RevokeKey: the id of the key

	Session string `json:"session,omitempty"` // of EndSessions: the id of one; "": all, and all API keys
	Address string `json:"address,omitempty"` // of RecoverUser: where the mail goes; "": the only address
	Ident   string `json:"ident,omitempty"`   // of UnlinkIdent: the uuid
}

// UserReply has the users whom an act was about: a page for ListUsers, otherwise one, as it is
// after the act, or was before its deletion.
type UserReply struct {
	Users []account.Account `json:"users"`
	Next  []byte            `json:"next,omitempty"` // nil: there is no further page

	// Of CreateKey: the key and its token, which is shown once.
	Key   *account.KeyInfo `json:"key,omitempty"`
	Token string           `json:"token,omitempty"`

	Address string `json:"address,omitempty"` // of RecoverUser: where the mail goes
}

// AskUsers executes one request. Errors: Invalid, NotFound, Exists, Unavailable.
type AskUsers func(ctx context.Context, q UserRequest) (*UserReply, error)

// ManageUsers calls do with what executes requests: the belfry that serves the stores if one does, and otherwise
// the stores themselves, whose events are published once a belfry serves them. mayCreate says that the stores
// need not exist yet.
func ManageUsers(ctx context.Context, c *config.Config, mayCreate bool, do func(AskUsers) error) error {
	p, err := plan.Compile(c)
	if err != nil {
		return err
	}
	if !mayCreate {
		if err := open.HasData(p); err != nil {
			return err
		}
	}
	return open.WithStoresOf(ctx, p, "user",
		func(set *store.Set) error {
			if err := open.CompleteClaims(ctx, p, set); err != nil {
				return err
			}
			users := account.New(p.AuthOptions(set))
			defer users.Close()
			return do(func(ctx context.Context, q UserRequest) (*UserReply, error) { return ManageUsersIn(ctx, users, q) })
		},
		func(h hold.Holder) error {
			return do(func(ctx context.Context, q UserRequest) (*UserReply, error) {
				return hold.Ask[UserReply](ctx, h, "/users", q)
			})
		})
}

// UserPage is how many users a page has.
const UserPage = 200

// ManageUsersIn answers one request about users with an open service.
func ManageUsersIn(ctx context.Context, users *account.Service, q UserRequest) (*UserReply, error) {
	agent := "belfry user " + string(q.Act)
	if q.By != "" {
		agent += " (" + q.By + ")"
	}
	ctx = store.WithCall(ctx, store.Call{Origin: event.OriginCommand, Ctx: event.Ctx{UserAgent: agent}})
	if q.Act == ListUsers {
		page, next, err := users.Admin.Accounts(ctx, q.After, UserPage)
		return &UserReply{Users: page, Next: next}, err
	}
	user, err := manageUser(ctx, users, q)
	if err != nil {
		return nil, err
	}
	reply := &UserReply{}
	if q.Act == CreateKey {
		key, token, err := users.Admin.IssueKey(ctx, user, q.Key)
		if err != nil {
			return nil, err
		}
		reply.Key, reply.Token = &key, token
	}
	if q.Act == RecoverUser {
		if reply.Address, err = users.Admin.SendRecovery(ctx, user.UUID, q.Address); err != nil {
			return nil, err
		}
	}
	a, err := users.Admin.AccountDetails(ctx, user)
	if err == nil && q.Act == DeleteUser {
		err = users.Admin.DeleteUser(ctx, user.UUID)
	}
	reply.Users = []account.Account{a}
	return reply, err
}

// manageUser executes an act about one user, other than a deletion, and returns the user.
func manageUser(ctx context.Context, users *account.Service, q UserRequest) (store.Stored, error) {
	if q.Act == CreateUser {
		fields := object.Object{}
		if len(q.Fields) > 0 {
			var err error
			if fields, err = object.Parse(q.Fields); err != nil {
				return store.Stored{}, err
			}
		}
		return users.Admin.CreateUser(ctx, account.NewUser{Login: q.Login, Password: q.Password, Fields: fields, Admin: q.Admin, Validated: q.Validated, Machine: q.Machine})
	}
	user, err := users.Admin.FindUser(ctx, q.User)
	if err != nil {
		return user, err
	}
	switch q.Act {
	case ShowUser, DeleteUser, CreateKey, RecoverUser:
		return user, nil
	case EndSessions:
		if q.Session != "" {
			return user, users.Admin.EndSession(ctx, user.UUID, q.Session)
		}
		return users.Admin.EndSessions(ctx, user.UUID)
	case KeepChanges:
		return users.Admin.KeepChangesFor(ctx, user.UUID)
	case UndoDelete:
		return users.Admin.UndoDeletionFor(ctx, user.UUID)
	case UnlinkIdent:
		return user, users.Admin.UnlinkFor(ctx, user.UUID, q.Ident)
	case ResetFactors:
		return users.Admin.ResetFactors(ctx, user.UUID)
	case RevokeKey:
		return user, users.Admin.EndKey(ctx, user.UUID, q.Revoked)
	case GrantAdmin, RevokeAdmin:
		return users.Admin.SetAdmin(ctx, user.UUID, q.Act == GrantAdmin)
	case DisableUser, EnableUser:
		return users.Admin.SetDisabled(ctx, user.UUID, q.Act == DisableUser)
	case SetPassword:
		return users.Admin.SetPassword(ctx, user.UUID, q.Password)
	default:
		return user, errs.New(errs.Invalid, "the belfry that serves the data does not know %q: use the command of its version", q.Act)
	}
}

// MaxUserRequest is the most bytes of a request: those of a user's fields and some.
const MaxUserRequest = 1 << 20
