package command

import (
	"context"
	"encoding/json"

	"belfry/pkg/account"
	"belfry/pkg/account/admin"
	"belfry/pkg/account/keys"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// UserAct is an action on users.
type UserAct string

// The actions.
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

// UserRequest requests an action.
type UserRequest struct {
	Act  UserAct `json:"act"`
	By   string  `json:"by,omitempty"`   // the requesting account of the operating system; for events
	User string  `json:"user,omitempty"` // uuid or e-mail address, but not for ListUsers and CreateUser

	Password string `json:"password,omitempty"` // of SetPassword and CreateUser

	// Of CreateUser.
	Login     string          `json:"login,omitempty"`
	Fields    json.RawMessage `json:"fields,omitempty"` // an object
	Admin     bool            `json:"admin,omitempty"`
	Validated bool            `json:"validated,omitempty"`
	Machine   bool            `json:"machine,omitempty"`

	Key     keys.New `json:"key,omitzero"`      // of CreateKey
	Revoked string   `json:"revoked,omitempty"` // of RevokeKey: the id of the key

	Session string `json:"session,omitempty"` // of EndSessions: the id of one; "": all, and all API keys
	Address string `json:"address,omitempty"` // of RecoverUser: the recipient; "": the only address
	Ident   string `json:"ident,omitempty"`   // of UnlinkIdent: the uuid
}

// UserReply has the user of an action, after the action, or before a deletion. For ListUsers each report of progress
// has a page of users, and the reply has no users.
type UserReply struct {
	Users []admin.Account `json:"users"`

	// Of CreateKey: the key and its token, which is shown once.
	Key   *keys.Info `json:"key,omitempty"`
	Token string     `json:"token,omitempty"`

	Address string `json:"address,omitempty"` // of RecoverUser: the recipient of the mail
}

// Users manages users. Errors: Invalid, NotFound, Exists, Unavailable. Events of a command that has opened the stores
// itself are published once a belfry serves them.
var Users = Operation[UserRequest, UserReply, UserReply]{
	Name: "user", Max: 1 << 20, // the fields of a user, and a reserve
	Creates: func(q UserRequest) bool { return q.Act == CreateUser },
	Doing:   func(q UserRequest) string { return "user " + string(q.Act) },
	Run: func(ctx context.Context, at *Place, q UserRequest, report func(UserReply)) (reply *UserReply, err error) {
		err = at.Users(ctx, func(users *account.Service) (err error) {
			reply, err = manageUsers(ctx, users, q, report)
			return err
		})
		return reply, err
	},
	Commands: userCommands,
}

// UserPage is the number of users of a page.
const UserPage = 200

// manageUsers answers one request about users with an open service.
func manageUsers(ctx context.Context, users *account.Service, q UserRequest,
	report func(UserReply)) (*UserReply, error) {
	agent := "belfry user " + string(q.Act)
	if q.By != "" {
		agent += " (" + q.By + ")"
	}
	ctx = store.WithCall(ctx, store.Call{Origin: event.OriginCommand, Ctx: event.Ctx{UserAgent: agent}})
	if q.Act == ListUsers {
		return &UserReply{}, listUsers(ctx, users, report)
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
	reply.Users = []admin.Account{a}
	return reply, err
}

// listUsers reports all users, page by page.
func listUsers(ctx context.Context, users *account.Service, report func(UserReply)) error {
	for after := []byte(nil); ; {
		page, next, err := users.Admin.Accounts(ctx, after, UserPage)
		if err != nil {
			return err
		}
		report(UserReply{Users: page})
		if after = next; after == nil {
			return nil
		}
	}
}

// manageUser executes an action on one user, other than a deletion, and returns the user.
func manageUser(ctx context.Context, users *account.Service, q UserRequest) (store.Stored, error) {
	if q.Act == CreateUser {
		fields := object.Object{}
		if len(q.Fields) > 0 {
			var err error
			if fields, err = object.Parse(q.Fields); err != nil {
				return store.Stored{}, err
			}
		}
		return users.Admin.CreateUser(ctx, admin.NewUser{Login: q.Login, Password: q.Password, Fields: fields,
			Admin: q.Admin, Validated: q.Validated, Machine: q.Machine})
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
		return user, errs.New(errs.Invalid,
			"the belfry that serves the data does not know %q: use the command of its version", q.Act)
	}
}
